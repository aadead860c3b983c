"""Where one request ends and the next begins is beyond doubt, or nothing more is read."""

import gc
import tracemalloc

import pytest

from tests.support.http_requests import read
from webhook.server.http_reader import CHUNKS, MAX_HEAD, RequestReader
from webhook.server.memory import SMALL, MemoryBudget
from webhook.server.requests import MAX_BODY, Request

SECOND = b"POST /second HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
NO_HTTP = "this is not HTTP"
BROKEN_OFF = "the body broke off"
CHUNKED = "Transfer-Encoding: chunked"


def request(*headers: str, body: bytes = b"", line: str = "POST /x HTTP/1.1") -> bytes:
    return "\r\n".join([line, *headers, "", ""]).encode("latin-1") + body


def test_what_is_read_of_a_request() -> None:
    text = request("Host: a", "Content-Type: application/json", "X:", "content-LENGTH: 3", body=b"abc")
    (one,) = read(text).requests
    assert (one.method, one.target, one.body, one.complete, one.keep_alive) == (b"POST", b"/x", b"abc", True, True)
    assert one.headers == {b"content-type": b"application/json", b"content-length": b"3"}


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_pieces_of_any_size(size: int) -> None:
    text = request(CHUNKED, body=b"3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nContent-Type: x\r\n\r\n") + SECOND
    found = read(*(text[start : start + size] for start in range(0, len(text), size)))
    assert found.complete == [(b"POST", b"/x", b"abcde"), (b"POST", b"/second", b"")]
    assert found.requests[0].headers == {}  # a trailer is no header
    assert found.stopped == ""


@pytest.mark.parametrize(
    ("line", "headers", "keep_alive"),
    [
        ("POST /x HTTP/1.1", [], True),
        ("POST /x HTTP/1.1", ["Connection: close"], False),
        ("POST /x HTTP/1.0", [], False),
    ],
)
def test_whether_another_may_follow(line: str, headers: list[str], keep_alive: bool) -> None:
    text = request(*headers, "Content-Length: 0", line=line)
    assert [each.keep_alive for each in read(text).requests] == [keep_alive]
    assert len(read(text, SECOND).requests) == 1 + keep_alive


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (["Content-Length: 5", CHUNKED], b"0\r\n\r\n"),
        ([CHUNKED, "Content-Length: 5"], b"0\r\n\r\n"),
        (["Content-Length: 0", "Content-Length: 44"], b""),
        (["Content-Length: 0", "Content-Length: 0"], b""),
        (["Content-Length: 0, 44"], b""),
        (["Content-Length: +0"], b""),
        (["Content-Length: -1"], b""),
        (["Content-Length: 0x0"], b""),
        (["Content-Length:"], b""),
        (["Content-Length: 18446744073709551616"], b""),
        (["Content-Length : 0"], b""),
        (["Transfer-Encoding: chunked, identity"], b"0\r\n\r\n"),
        (["Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
        (["Transfer-Encoding: identity"], b""),
        (["Transfer-Encoding: gzip"], b""),
        (["Transfer-Encoding : chunked"], b"0\r\n\r\n"),
        (["Transfer-Encoding:\x0bchunked"], b"0\r\n\r\n"),
        (["X: a\x00b"], b""),
        (["X\x00: a"], b""),
        (["X: a\rContent-Length: 44"], b""),
        (["X: a\nContent-Length: 44"], b""),
        ([" Content-Length: 44"], b""),
        ([": a"], b""),
        (["a"], b""),
        ([CHUNKED], b"0x0\r\n\r\n"),
        ([CHUNKED], b"-1\r\n\r\n"),
        ([CHUNKED], b"\r\n\r\n"),
        ([CHUNKED], b"FFFFFFFFFFFFFFFFF\r\n"),
        ([CHUNKED], b"1\r\nab\r\n0\r\n\r\n"),
        ([CHUNKED], b"1\na\n0\n\n"),
        ([CHUNKED], b"1 \r\na\r\n0\r\n\r\n"),
        ([CHUNKED], b"0\r\nX: a\x00b\r\n\r\n"),
    ],
)
def test_what_others_could_read_as_another_request_ends_the_connection(headers: list[str], body: bytes) -> None:
    found = read(request("Host: a", *headers, body=body), SECOND)
    assert found.complete == []
    assert found.stopped in {NO_HTTP, BROKEN_OFF}


@pytest.mark.parametrize(
    "line",
    ["POST /x HTTP/1.1 ", "POST /x HTTP/1.1.1", "POST /x HTTP/9",
     "POST /x\x00 HTTP/1.1", "POST /\xe9 HTTP/1.1", "post /x HTTP/1.1", "POST\t/x HTTP/1.1", "\x16\x03\x01",
     "PRI * HTTP/2.0"],
)  # fmt: skip
def test_what_is_no_request_line(line: str) -> None:
    found = read(request("Content-Length: 0", line=line), SECOND)
    assert (found.requests, found.stopped) == ([], NO_HTTP)


def test_another_protocol_is_not_spoken() -> None:
    found = read(request("Connection: upgrade", "Upgrade: h2c"), SECOND)
    assert (len(found.requests), found.stopped) == (1, "only HTTP/1 is spoken here")


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        ("POST /", b"x" * 1000),
        ("POST /x HTTP/1.1\r\nX: ", b"x" * 1000),
        ("POST /x HTTP/1.1\r\n", b"X: a\r\n" * 200),
        ("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: a\r\n" * 200),
        ("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"1;" + b"x" * 100 + b"\r\na\r\n"),
        ("", b"\r\n" * 500),
    ],
    ids=["target", "header", "headers", "trailers", "chunk extensions", "empty lines"],
)
@pytest.mark.parametrize("pieces", [1, 1000])
def test_a_head_without_end(begin: str, more: bytes, pieces: int) -> None:
    found = read(begin.encode(), *[more * (1000 // pieces)] * pieces)
    assert (found.complete, found.stopped) == ([], "the head is too large")
    assert all(each.refused for each in found.requests)
    short = read(begin.encode(), *[more] * (MAX_HEAD // len(more) - 1))
    assert short.stopped == ""


def test_bodies_of_one_byte_at_a_time() -> None:
    text = request(CHUNKED) + b"1\r\na\r\n" * 100_000 + b"0\r\n\r\n"
    found = read(*(text[start : start + 4000] for start in range(0, len(text), 4000)), SECOND)
    assert [len(body) for _, _, body in found.complete] == [100_000, 0]


def test_a_body_in_more_chunks_than_anybody_sends() -> None:
    """Each takes as much time as some hundred bytes."""
    for size, times, stopped in (
        (1, CHUNKS // 1000 - 10, ""),
        (1, CHUNKS // 1000 + 50, "the head is too large"),
        (100, 50, ""),
    ):
        more = b"%x\r\n%b\r\n" % (size, b"a" * size) * 1000
        assert read(request(CHUNKED), *[more] * times).stopped == stopped


@pytest.mark.parametrize("sizes", [(1,), (2,), (100,), (1, 5000), (3000, 5000)])
def test_a_body_takes_as_much_memory_as_it_has_bytes(sizes: tuple[int, ...]) -> None:
    """In chunks of two bytes it took 27 times as much."""
    some = b"".join(b"%x\r\n%b\r\n" % (size, b"ab" * (size // 2) + b"c" * (size % 2)) for size in sizes)
    tracemalloc.start()
    try:
        found = read(request(CHUNKED), *[some * (20_000 // len(some))] * 20)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (one,) = found.requests
    assert one.refused is None
    assert one.size > 50_000
    assert held < 1.2 * one.size + 20_000


def test_a_body_is_kept_as_far_as_it_may_be() -> None:
    for beyond in (0, 1):
        found = read(request(CHUNKED) + b"%x\r\n" % (MAX_BODY + beyond), b" " * (MAX_BODY + beyond), b"\r\n0\r\n\r\n")
        (one,) = found.requests
        assert (len(one.body), one.refused is not None, one.complete) == (0 if beyond else MAX_BODY, bool(beyond), True)


def test_a_large_body_takes_of_the_memory_for_all() -> None:
    memory = MemoryBudget(in_all=3 * SMALL, of_one_peer=3 * SMALL)
    first, second = (
        read(request(f"Content-Length: {2 * SMALL}"), b" " * SMALL, b" " * SMALL, memory=memory).requests[0]
        for _ in range(2)
    )
    assert (first.refused, memory.held["peer"]) == (None, 2 * SMALL)
    assert second.refused is not None
    assert (second.refused.status, second.refused.shed, second.body) == (503, True, b"")
    for each in (first, second):
        assert each.claim is not None
        each.claim.give_back()
    assert memory.held == {}


def test_a_request_that_is_answered_is_held_by_nobody() -> None:
    """Nor is a reader that has ended, though its parser holds it."""
    begun: list[Request] = []
    reader = RequestReader(begun.append, lambda: MemoryBudget().claim("peer"))
    reader.feed(SECOND + request("Content-Length: 3", body=b"abc"))
    gc.collect()
    gc.disable()
    try:
        begun.clear()
        assert [each.size for each in gc.get_objects() if isinstance(each, Request) and each.size] == []
        reader.end()
        del reader
        assert [each for each in gc.get_objects() if isinstance(each, RequestReader)] == []
    finally:
        gc.enable()
