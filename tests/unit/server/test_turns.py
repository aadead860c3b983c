"""No address keeps the others waiting for more than its share."""

import asyncio
import gc
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support import jobs
from tests.support.live_service import Live, head, live
from webhook.server import turns
from webhook.server.requests import Refused, Reply, Request
from webhook.server.turns import SHARE, Turns

GOOD = jobs.body(jobs.GOOD)
REVIEW = head("/validate-mpijob", content_length=str(len(GOOD))) + GOOD


class Answering:
    """Requests that take a share each, and the order in which they are answered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float = 2 * SHARE) -> None:
        self.turns = Turns()
        self.order = ""
        self._now = 0.0
        self._seconds = seconds
        self._kept = {peer: self.turns.of(peer) for peer in "abc"}
        monkeypatch.setattr(turns, "monotonic", lambda: self._now)

    def send(self, peers: str) -> None:
        """Those of a turn of the loop: each letter is the address of one."""
        for peer in peers:
            self.turns.take(self._kept[peer], lambda peer=peer: self._answer(peer))

    def _answer(self, peer: str) -> None:
        self._now += self._seconds
        self.order += peer

    async def rounds(self, count: int) -> None:
        """Let the loop go round."""
        for _ in range(count):
            await asyncio.sleep(0)


def test_others_come_between_those_of_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> str:
        answering = Answering(monkeypatch)
        answering.send("aaaaa")
        assert answering.order == "a"
        for _ in range(3):
            await answering.rounds(1)
            answering.send("b")
        await answering.rounds(20)
        return answering.order

    order = asyncio.run(run())
    assert order.startswith("aab")
    assert "bb" not in order.rstrip("a")
    assert (order.count("a"), order.count("b")) == (5, 3)


def test_those_that_wait_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> str:
        answering = Answering(monkeypatch)
        answering.send("aaaaabbccc")
        await answering.rounds(20)
        return answering.order

    assert asyncio.run(run()) == "abcabcacaa"


def test_what_takes_little_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> list[int]:
        answering = Answering(monkeypatch, SHARE / 10 * 1.01)
        found = []
        for _ in range(3):
            answering.send("a" * 25)
            found.append(len(answering.order))
            await answering.rounds(4)
        return [*found, len(answering.order)]

    at_once, *_, last = asyncio.run(run())
    assert (at_once, last) == (10, 75)


def test_an_address_without_connections_is_forgotten() -> None:
    known = Turns()
    first = known.of("a")
    assert known.of("a") is first
    del first
    gc.collect()
    assert len(known._addresses) == 0


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A service in which every request is all of its address's share."""
    monkeypatch.setattr(turns, "SHARE", 0.0)
    with live() as service:
        yield service


def test_all_are_answered_and_in_order(strict: Live) -> None:
    opened = [strict.connect() for _ in range(8)]
    for each in opened:
        each.send(REVIEW * 5, head("/elsewhere", content_length="0"))
    for each in opened:
        assert [each.receive().status for _ in range(6)] == [200] * 5 + [404]
        each.close()
    strict.wait_until(lambda: strict.service.server.in_flight == 0)


def test_one_that_goes_away_while_it_waits_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    with live() as service:
        server = service.service.server
        held = []
        monkeypatch.setattr(server.turns, "take", lambda _, answer: held.append(answer))
        connection = service.connect()
        connection.send(REVIEW * 2)
        service.wait_until(lambda: held)
        assert server.in_flight == 2
        connection.close()
        service.wait_until(lambda: not server.connections)
        assert (server.in_flight, len(held)) == (0, 1)
        service.wait_until(lambda: held[0]() is None)
        assert service.metric("reviews_total", webhook="validate") == 0
        monkeypatch.undo()
        assert service.post("/validate-mpijob", GOOD).status == 200


class Noting:
    """An application that notes whose requests it answers."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def expect(self, request: Request) -> None:
        request.deadline = request.started + 60

    def answer(self, request: Request) -> Reply:
        self.order.append(request.peer)
        return Reply(b"")

    def refuse(self, request: Request, refused: Refused) -> Reply:
        return Reply(b"", status=refused.status)


def test_one_request_of_another_is_not_behind_those_of_many_connections(
    strict: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    noting = strict.service.server.application = Noting()
    many = [strict.connect() for _ in range(30)]
    connect = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda *a, **k: connect(*a, source_address=("127.0.0.2", 0), **k))
    other = strict.connect()
    server = strict.service.server
    strict.wait_until(lambda: len(server.connections) == 31)
    go_on = threading.Event()
    strict.loop.call_soon_threadsafe(go_on.wait, 60)
    for each in (*many, other):
        each.send(REVIEW)
    go_on.set()
    for each in (*many, other):
        assert each.receive().status == 200
        each.close()
    assert noting.order.count("127.0.0.1") == 30
    assert noting.order.index("127.0.0.2") <= 3
