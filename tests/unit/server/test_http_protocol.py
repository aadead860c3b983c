"""One request after the other, however a client sends them; what it must not hold for ever."""

import asyncio
import gc
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

from tests.support import jobs
from tests.support.live_service import Connection, Live, head, live
from webhook.server import http_protocol
from webhook.server.http_protocol import HttpProtocol
from webhook.server.requests import Refused, Reply, Request

GOOD = jobs.body(jobs.GOOD)
PATH = "/validate-mpijob"


def review(path: str = PATH) -> bytes:
    return head(path, content_length=str(len(GOOD))) + GOOD


class Slow:
    """An application that answers when it is told to, with the number of the request."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.asked = 0
        self.refused: list[str] = []

    def expect(self, request: Request) -> None:
        request.deadline = request.started + 60

    def answer(self, request: Request) -> Any:
        self.asked += 1
        return self._later(self.asked)

    async def _later(self, number: int) -> Reply:
        await self.over.wait()
        return Reply(b"%d" % number)

    def refuse(self, request: Request, refused: Refused) -> Reply:
        self.refused.append(refused.reason)
        return Reply(refused.reason.encode(), status=refused.status)


class Failing(Slow):
    """An application with a fault, and what it was asked."""

    def __init__(self, *, later: bool) -> None:
        super().__init__()
        self._at_once = not later

    def answer(self, _: Request) -> Any:
        self.asked += 1
        if self._at_once:
            raise RuntimeError
        return self._fail()

    async def _fail(self) -> Reply:
        raise RuntimeError


class Large:
    """An application whose replies are far larger than what the sockets hold."""

    BODY = b"x" * 20 * 2**20

    def __init__(self) -> None:
        self.refused: list[str] = []

    def expect(self, request: Request) -> None:
        request.deadline = request.started + 60

    def answer(self, _: Request) -> Any:
        return Reply(self.BODY)

    def refuse(self, _: Request, refused: Refused) -> Reply:
        self.refused.append(refused.reason)
        return Reply(refused.reason.encode(), status=refused.status)


@pytest.fixture
def running() -> Iterator[Live]:
    with live() as service:
        yield service


@pytest.fixture
def slow(running: Live) -> Slow:
    made = running.service.server.application = Slow()
    return made


@pytest.fixture
def connection(running: Live) -> Iterator[Connection]:
    opened = running.connect()
    yield opened
    opened.close()


def end(running: Live, slow: Slow) -> None:
    running.loop.call_soon_threadsafe(slow.over.set)


def test_what_waits_is_answered_in_order(running: Live, slow: Slow) -> None:
    connection = running.connect()
    connection.send(*[review()] * 3)
    running.wait_until(lambda: slow.asked == 1)
    assert running.metric("in_flight") == 3
    end(running, slow)
    assert [connection.receive().body for _ in range(3)] == [b"1", b"2", b"3"]
    assert running.metric("in_flight") == 0
    connection.close()


def test_while_a_request_waits_no_more_are_read(running: Live, slow: Slow) -> None:
    connection = running.connect()
    connection.send(review())
    running.wait_until(lambda: slow.asked == 1)
    connection.socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        connection.send(review() * 30_000)
    assert running.metric("in_flight") < 1000
    connection.close()
    end(running, slow)
    running.wait_until(lambda: not running.service.server.connections)
    running.wait_until(lambda: running.metric("in_flight") == 0)


def test_requests_ahead_have_a_bound(running: Live, slow: Slow) -> None:
    """Those that fit into one read took megabytes for each connection."""
    connection = running.connect()
    connection.send(b"GET / HTTP/1.1\r\n\r\n" * 10_000)
    running.wait_until(lambda: slow.asked == 1)
    assert running.metric("in_flight") == http_protocol.MOST_AHEAD + 1
    end(running, slow)
    for number in range(http_protocol.MOST_AHEAD):
        assert connection.receive().body == b"%d" % (number + 1)
    assert connection.receive().body == b"too many requests ahead of their replies"
    connection.close()


def test_a_client_that_goes_away_while_its_request_waits(running: Live, slow: Slow) -> None:
    connection = running.connect()
    connection.send(review() * 2, review()[:-10])
    running.wait_until(lambda: slow.asked == 1)
    connection.close()
    end(running, slow)
    running.wait_until(lambda: running.metric("in_flight") == 0)
    assert (slow.asked, slow.refused) == (1, ["the body broke off"])


def test_what_a_client_asked_for_that_went_away_is_given_up(running: Live, slow: Slow) -> None:
    connection = running.connect()
    connection.send(review())
    running.wait_until(lambda: slow.asked == 1)
    for each in [*running.service.server.connections]:
        running.loop.call_soon_threadsafe(each.transport.abort)
    running.wait_until(lambda: running.metric("in_flight") == 0)
    assert not slow.over.is_set()
    connection.close()


@pytest.mark.parametrize("later", [False, True])
def test_a_fault_of_ours_ends_its_connection_and_no_other(running: Live, later: bool) -> None:
    server = running.service.server
    application, failing = server.application, Failing(later=later)
    server.application = failing
    connection = running.connect()
    connection.send(review() * 3)
    assert connection.closed
    running.wait_until(lambda: running.metric("in_flight") == 0)
    assert failing.asked == 1
    server.application = application
    other = running.connect()
    other.send(review())
    assert other.receive().status == 200
    for each in (connection, other):
        each.close()


def test_a_service_that_ends_waits_for_nobody() -> None:
    with live() as running:
        slow = running.service.server.application = Slow()
        connection = running.connect()
        connection.send(review())
        running.wait_until(lambda: slow.asked == 1)
    assert connection.closed
    connection.close()


def test_a_reply_that_nobody_reads_is_counted_until_it_is_read(running: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one peer took memory without end: a reply may be several times its request."""
    monkeypatch.setattr(http_protocol, "SEND_SECONDS", 600)
    server = running.service.server
    large = server.application = Large()
    waiting = [running.connect() for _ in range(3)]
    for each in waiting:
        each.send(review())
    running.wait_until(lambda: server.memory.held.total() == 2 * len(Large.BODY))
    running.wait_until(lambda: large.refused)
    responses = [each.receive() for each in waiting]
    assert sorted(response.status for response in responses) == [200, 200, 503]
    assert {response.body for response in responses} == {Large.BODY, b"too many large bodies at once"}
    running.wait_until(lambda: not server.memory.held)
    assert running.metric("in_flight") == 0
    waiting[0].send(review())
    assert waiting[0].receive().status == 200
    for each in waiting:
        each.close()


@pytest.mark.parametrize("how", ["gone", "slow", "drain"])
def test_a_reply_that_is_never_read_is_given_up(running: Live, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(http_protocol, "SEND_SECONDS", 0.2 if how == "slow" else 600)
    server = running.service.server
    server.application = Large()
    connection = running.connect()
    connection.send(review())
    if how == "gone":
        running.wait_until(lambda: server.memory.held)
        connection.close()
    elif how == "drain":
        running.wait_until(lambda: server.memory.held)
        running.loop.call_soon_threadsafe(server.pre_shutdown)
        assert connection.receive().body == Large.BODY
        assert connection.closed
        connection.close()
    running.wait_until(lambda: not server.connections)
    assert (server.memory.held, running.metric("in_flight")) == ({}, 0)
    connection.close()


def test_the_rest_of_a_refused_body_is_thrown_away(connection: Connection) -> None:
    connection.send(head("/elsewhere", content_length="20000000"), b" " * 100)
    response = connection.receive()
    assert (response.status, response.headers["connection"]) == (404, "close")
    connection.send(b" " * 10_000_000, review())
    assert connection.closed  # without another reply


def test_who_sends_a_refused_body_for_ever_is_cut_off(running: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "LINGER_SECONDS", 0.1)
    connection = running.connect()
    connection.send(head("/elsewhere", content_length="20000000"))
    assert connection.receive().status == 404
    assert connection.closed
    connection.close()


def test_a_refused_request_whose_body_is_there_keeps_its_connection(connection: Connection) -> None:
    connection.send(review("/elsewhere"), review())
    assert [connection.receive().status for _ in range(2)] == [404, 200]


@pytest.mark.parametrize(
    "smuggled",
    [
        head(PATH, content_length="4", transfer_encoding="chunked") + b"0\r\n\r\n",
        head(PATH, transfer_encoding="chunked") + b"0x0\r\n\r\n",
        b"no HTTP\r\n\r\n",
    ],
    ids=["two lengths", "no length", "no HTTP"],
)
def test_after_what_is_in_doubt_nothing_is_answered(
    running: Live, connection: Connection, smuggled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "LINGER_SECONDS", 0.1)
    connection.send(review(), smuggled, review())
    assert connection.receive().status == 200
    refusal = connection.receive()
    assert (refusal.status, refusal.headers["connection"]) == (400, "close")
    assert connection.closed
    assert running.metric("in_flight") == 0
    assert running.metric("bad_requests_total", code="400") == 1


def test_a_path_without_end(connection: Connection) -> None:
    connection.send(head("/" + "x" * 3000, content_length="0"))
    assert connection.receive().status == HTTPStatus.REQUEST_URI_TOO_LONG


def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "KEEPALIVE_SECONDS", 0.2)
    with live() as running:
        connection = running.connect()
        assert connection.post(PATH, GOOD).status == 200
        connection.send(review()[:20])  # half a head is nothing
        assert connection.closed
        connection.close()


def test_a_connection_that_waits_for_its_reply_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "KEEPALIVE_SECONDS", 0.05)
    with live() as running:
        slow = running.service.server.application = Slow()
        connection = running.connect()
        connection.send(review())
        running.begin(asyncio.sleep(0.2)).result()
        end(running, slow)
        assert connection.receive().body == b"1"
        connection.close()


def test_a_connection_that_has_ended_is_held_by_nobody(running: Live) -> None:
    """The garbage collector hardly runs: a service makes no garbage."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            assert running.post(PATH, GOOD).status == 200
        running.wait_until(lambda: running.metric("connections") == 0)
        left = [each for each in gc.get_objects() if isinstance(each, HttpProtocol)]
        assert [each for each in left if each._server is running.service.server] == []
    finally:
        gc.enable()
