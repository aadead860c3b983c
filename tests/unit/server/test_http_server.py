"""The limits around aiohttp: a misbehaving client loses its own connection, and no other client is affected."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web

from tests.support import jobs
from tests.support.live_service import Connection, Live, head, live
from webhook.server import http_server, review_port
from webhook.server.http_request import Refused, Reply, Request
from webhook.server.http_server import HttpConnection
from webhook.server.limits import MAX_HEAD_BYTES
from webhook.server.review_port import ReviewPort

GOOD = jobs.body(jobs.GOOD)
PATH = "/validate-mpijob"
CHUNKED = head(PATH, transfer_encoding="chunked")
LONG_HEAD = b"POST / HTTP/1.1\r\n" + b"X: a\r\n" * (MAX_HEAD_BYTES // 6)


def review(path: str = PATH, **headers: str) -> bytes:
    return head(path, content_length=str(len(GOOD)), **headers) + GOOD


class Slow:
    """A handler that replies on demand with the number of the request."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.asked = 0

    def expect(self, request: Request) -> None:
        request.deadline = request.started + 60

    def answer(self, _: Request) -> Any:
        self.asked += 1
        return self._later(self.asked)

    async def _later(self, number: int) -> Reply:
        await self.over.wait()
        return Reply(b"%d" % number)

    def refuse(self, _: Request, refused: Refused) -> Reply:
        return Reply(refused.reason.encode(), status=refused.status)


class Failing(Slow):
    async def _later(self, number: int) -> Reply:
        raise RuntimeError(number)


class Large(Slow):
    """A handler whose replies are far larger than the sockets' buffers."""

    BODY = b"x" * 64 * 2**20

    async def answer(self, _: Request) -> Any:
        self.asked += 1
        return Reply(self.BODY)


class Medium(Large):
    """A handler whose replies are written in one piece."""

    BODY = b"x" * review_port.PIECE


@pytest.fixture
def running() -> Iterator[Live]:
    with live() as service:
        yield service


@pytest.fixture
def connection(running: Live) -> Iterator[Connection]:
    opened = running.connect()
    yield opened
    opened.close()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The input of aiohttp's parser."""
    seen: list[bytes] = []
    parse = web.RequestHandler.data_received

    def noted(self: web.RequestHandler, data: bytes) -> None:
        seen.append(data)
        parse(self, data)

    monkeypatch.setattr(web.RequestHandler, "data_received", noted)
    return seen


def answer_with(running: Live, application: Any) -> Any:
    running.service.server.handler = ReviewPort(application).handle
    return application


def refused(running: Live, reason: str) -> Callable[[], bool]:
    return lambda: running.metric("connections_refused_total", reason=reason) == 1


def test_pipelined_request_ends_the_connection_after_the_reply(
    running: Live, connection: Connection, parsed: list[bytes]
) -> None:
    """Formerly, pipelined requests of 300 connections took hundreds of megabytes."""
    slow = answer_with(running, Slow())
    connection.send(review() * 500)
    running.wait_until(lambda: slow.asked == 1)
    assert running.metric("in_flight") == 1
    running.loop.call_soon_threadsafe(slow.over.set)
    assert connection.receive().body == b"1"
    assert connection.closed
    assert (slow.asked, sum(map(len, parsed))) == (1, len(review()))
    running.wait_until(refused(running, "ahead"))


@pytest.mark.parametrize("pieces", [1, 50])
def test_body_without_its_length_is_a_411_and_is_not_parsed(
    connection: Connection, parsed: list[bytes], pieces: int
) -> None:
    """Formerly, bodies in one-byte chunks on 100 connections stopped the service for many seconds."""
    connection.send(CHUNKED)
    for _ in range(pieces):
        connection.send(b"1\r\na\r\n" * (50_000 // pieces))
    response = connection.receive()
    assert (response.status, response.headers["connection"]) == (411, "close")
    assert response.body == b"the body needs a Content-Length\n"
    assert connection.closed
    assert sum(map(len, parsed)) == len(CHUNKED)


def test_post_without_a_body_needs_a_length_too(connection: Connection) -> None:
    connection.send(head(PATH))
    assert connection.receive().status == 411


@pytest.mark.parametrize(
    ("length", "status"),
    [("9" * 5_000, 400), ("0" * 5_000 + str(len(GOOD)), 200), (str(2**64), 400), (str(2**64 - 1), 413), ("0", 400)],
    ids=["5,000 digits", "5,000 zeros", "65 bits", "64 bits", "zero"],
)
def test_content_length_must_be_a_valid_number_within_the_limit(
    running: Live, connection: Connection, length: str, status: int
) -> None:
    connection.send(head(PATH, content_length=length) + (GOOD if status == 200 else b""))
    assert connection.receive().status == status
    assert running.log("library") == []
    assert running.metric("internal_errors_total", webhook="validate") == 0


@pytest.mark.parametrize(
    "sent",
    [
        head(PATH, content_length="4", transfer_encoding="chunked") + b"0\r\n\r\n",
        head(PATH, content_length="0").replace(b"\r\n\r\n", b"\r\nContent-Length: 44\r\n\r\n"),
        head(PATH, content_length="0, 44"),
        head(PATH, content_length="+0"),
        head(PATH, content_length="-1"),
        head(PATH, content_length="0x0"),
        head(PATH).replace(b"\r\n\r\n", b"\r\nContent-Length : 0\r\n\r\n"),
        head(PATH).replace(b"\r\n\r\n", b"\r\nX: a\rContent-Length: 44\r\n\r\n"),
        head(PATH).replace(b"\r\n\r\n", b"\r\nX: a\nContent-Length: 44\r\n\r\n"),
        head(PATH).replace(b"\r\n\r\n", b"\r\n Content-Length: 44\r\n\r\n"),
        head(PATH, transfer_encoding="xchunked"),
        head(PATH, transfer_encoding="chunked, identity"),
        head(PATH, x="a\x00b", content_length="0"),
        head(PATH, host="", content_length="0"),
        b"POST /\x00 HTTP/1.1\r\n\r\n",
        b"no HTTP\r\n\r\n",
    ],
)
def test_request_after_an_ambiguous_request_gets_no_reply(running: Live, connection: Connection, sent: bytes) -> None:
    connection.send(review())
    assert connection.receive().status == 200
    connection.send(sent, review())
    refusal = connection.receive()
    assert refusal.status in {400, 411}
    assert connection.closed
    assert len(running.log("decision")) == 1
    assert running.metric("in_flight") == 0
    assert len(running.log("refused")) == 1
    assert running.log("library") == []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_requests_in_pieces_of_any_size_are_answered(connection: Connection, size: int) -> None:
    for text in (b"\r\n\r\n" + review(), review()):
        for start in range(0, len(text), size):
            connection.send(text[start : start + size])
        assert connection.receive().status == 200


@pytest.mark.parametrize("before", [0, 1])
def test_incomplete_head_is_cut_off(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    with live() as running:
        connection = running.connect()
        for _ in range(before):
            assert connection.post(PATH, GOOD).status == 200
        monkeypatch.setattr(http_server, "MAX_HEAD_SECONDS", 0.1)
        connection.send(review()[:20])
        if not before:  # the time limit starts with the TLS handshake
            connection.close()
            connection = running.connect()
        running.wait_until(refused(running, "silent"))
        running.wait_until(lambda: running.metric("connections") == 0)
        connection.close()


@pytest.mark.parametrize(
    "sent",
    [LONG_HEAD, LONG_HEAD + b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n"],
    ids=["without end", "too large", "HTTP/2"],
)
def test_head_that_is_too_large_or_not_http_1_is_cut_off(running: Live, connection: Connection, sent: bytes) -> None:
    connection.send(sent)
    running.wait_until(refused(running, "head"))
    assert running.post(PATH, GOOD).status == 200


def test_client_that_does_not_read_a_large_reply_is_cut_off(
    running: Live, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_port, "MAX_SEND_SECONDS", 0.5)
    large = answer_with(running, Large())
    connection.send(review())
    running.wait_until(refused(running, "unread"))
    running.wait_until(lambda: not running.service.server.connections)
    assert (large.asked, running.metric("connections"), running.metric("in_flight")) == (1, 0, 0)


def test_client_that_sends_and_never_reads_is_cut_off(running: Live, connection: Connection) -> None:
    """Formerly, replies to 500 connections took a gigabyte. The buffers of sockets are in the kernel's memory."""
    medium = answer_with(running, Medium())
    server = running.service.server
    for sent in range(1, 2000):
        try:
            connection.send(review())
        except OSError:
            break
        running.wait_until(lambda sent=sent: medium.asked == sent or not server.connections)
    running.wait_until(refused(running, "unread"))
    running.wait_until(lambda: not server.connections)
    assert running.metric("in_flight") == 0


def test_large_reply_that_is_read_slowly_arrives(running: Live, connection: Connection) -> None:
    large = answer_with(running, Large())
    for number in range(2):
        connection.send(review())
        running.wait_until(lambda number=number: large.asked == number + 1)
        assert connection.receive().body == Large.BODY


def test_work_for_a_disconnected_client_is_cancelled(running: Live) -> None:
    slow = answer_with(running, Slow())
    connection = running.connect()
    connection.send(review())
    running.wait_until(lambda: slow.asked == 1)
    connection.close()
    running.wait_until(lambda: running.metric("in_flight") == 0)
    assert not slow.over.is_set()
    running.wait_until(lambda: running.metric("connections") == 0)


def test_internal_error_is_a_500_and_affects_no_other_request(running: Live, connection: Connection) -> None:
    handler = running.service.server.handler
    answer_with(running, Failing())
    connection.send(review())
    assert connection.receive().status == 500
    running.service.server.handler = handler
    assert running.post(PATH, GOOD).status == 200
    assert running.metric("in_flight") == 0


def test_service_that_ends_does_not_wait_for_connections() -> None:
    with live() as running:
        slow = answer_with(running, Slow())
        connection = running.connect()
        connection.send(review())
        running.wait_until(lambda: slow.asked == 1)
    assert connection.closed
    connection.close()


def test_rest_of_a_rejected_body_is_discarded(connection: Connection) -> None:
    connection.send(head("/elsewhere", content_length="20000000"), b" " * 100)
    response = connection.receive()
    assert (response.status, response.headers["connection"]) == (404, "close")
    connection.send(b" " * 10_000_000)
    assert connection.closed  # no second reply was sent


def test_rejected_request_with_a_complete_body_keeps_its_connection(connection: Connection) -> None:
    for path, status in (("/elsewhere", 404), (PATH, 200)):
        connection.send(review(path))
        assert connection.receive().status == status


def test_endless_path_is_rejected(connection: Connection) -> None:
    connection.send(head("/" + "x" * 3000, content_length="0"))
    assert connection.receive().status == 414


def test_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "KEEPALIVE_SECONDS", 0.2)
    with live() as running:
        connection = running.connect()
        assert connection.post(PATH, GOOD).status == 200
        assert connection.closed
        connection.close()


def test_other_clients_are_served_during_a_flood(running: Live) -> None:
    floods = [
        CHUNKED + b"1\r\na\r\n" * 10_000,
        review() * 100,
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000,
        b"\r\n" * 9000,
    ]
    hostile = [running.connect() for _ in range(20)]
    for number, each in enumerate(hostile):
        each.send(floods[number % len(floods)])
    assert running.post(PATH, GOOD).status == 200
    for each in hostile:
        each.close()
    running.wait_until(lambda: running.metric("connections") == 0)
    assert [each for each in running.service.server.connections if isinstance(each, HttpConnection)] == []
