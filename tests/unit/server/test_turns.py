"""No address keeps the others waiting for more than its share."""

import asyncio
import gc
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

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
        self.work: list[asyncio.Future[str]] = []
        self._now = 0.0
        self._seconds = seconds
        self._kept = {peer: self.turns.of(peer) for peer in "abc"}
        monkeypatch.setattr(turns, "monotonic", lambda: self._now)

    def send(self, peers: str) -> None:
        """Those of a turn of the loop: each letter is the address of one."""
        for peer in peers:
            self.turns.take(self._kept[peer], lambda peer=peer: self._answer(peer))

    def start(self, peers: str, steps: int = 1) -> None:
        """The same, of requests whose replies take so many steps."""
        for peer in peers:
            self.turns.take(self._kept[peer], lambda peer=peer: self._begin(peer, steps))

    def _begin(self, peer: str, steps: int) -> None:
        self.work.append(asyncio.ensure_future(self.turns.paced(self._kept[peer], self._later(peer, steps))))

    async def _later(self, peer: str, steps: int) -> str:
        for step in range(steps):
            if step:
                await asyncio.sleep(0)
            self._answer(peer)
        return peer

    def fail(self, peers: str) -> None:
        """The same, of requests that no reply comes of."""
        for peer in peers:
            self.turns.take(self._kept[peer], lambda: self._now / 0)

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


@pytest.mark.parametrize("steps", [1, 3])
def test_others_come_between_the_steps_of_one_address(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """A reply that has to be waited for took nothing of the share of its address."""

    async def run() -> str:
        answering = Answering(monkeypatch)
        answering.start("aaaaa", steps)
        for _ in range(6):
            await answering.rounds(1)
            answering.send("b")
        await answering.rounds(50)
        assert [each.result() for each in answering.work] == ["a"] * 5
        return answering.order

    order = asyncio.run(run())
    assert "aa" not in order.rstrip("a")
    assert (order.count("a"), order.count("b")) == (5 * steps, 6)


def test_steps_that_take_little_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> str:
        answering = Answering(monkeypatch, SHARE / 100)
        answering.start("a" * 25)
        await answering.rounds(1)
        return answering.order

    assert asyncio.run(run()) == "a" * 25


def test_work_gets_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, exceptions and the end of its time, whether it is its turn or not."""

    async def asking(answer: "asyncio.Future[str]") -> str:
        try:
            async with asyncio.timeout(0.01):
                return await answer
        except (ValueError, TimeoutError) as error:
            return type(error).__name__

    async def run() -> list[str]:
        answering = Answering(monkeypatch)
        address = answering.turns.of("a")
        answers: list[asyncio.Future[str]] = [asyncio.Future() for _ in range(3)]
        work = [asyncio.ensure_future(answering.turns.paced(address, asking(each))) for each in answers]
        await answering.rounds(1)
        answering.send("a")
        assert address.over
        answers[0].set_result("value")
        answers[1].set_exception(ValueError())
        return await asyncio.gather(*work)

    assert asyncio.run(run()) == ["value", "ValueError", "TimeoutError"]


def test_work_that_is_given_up_before_its_turn_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> str:
        answering = Answering(monkeypatch)
        answering.start("aaa")
        await answering.rounds(1)
        answering.work[1].cancel()
        await answering.rounds(10)
        assert answering.work[1].cancelled()
        return answering.order

    assert asyncio.run(run()) == "aa"


def test_an_exception_keeps_nobody_from_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address in line stayed there for ever."""
    told = []

    async def run() -> str:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(type(context["exception"])))
        answering = Answering(monkeypatch)
        answering.send("ab")
        answering.fail("ab")
        answering.send("ab")
        await answering.rounds(10)
        answering.fail("a")
        answering.send("ab")
        await answering.rounds(10)
        return answering.order

    assert asyncio.run(run()) == "ababab"
    assert told == [ZeroDivisionError] * 3


async def test_nor_does_what_is_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def late() -> None:
        raise KeyboardInterrupt

    answering = Answering(monkeypatch)
    due: list[Callable[[], None]] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_soon", due.append)
    answering.send("ab")
    answering.turns.take(answering._kept["a"], late)
    answering.send("a")
    with pytest.raises(KeyboardInterrupt):
        due.pop()()
    while due:
        due.pop()()
    monkeypatch.undo()
    assert answering.order == "aba"


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

    def answer(self, request: Request) -> Any:
        self.order.append(request.peer)
        return Reply(b"")

    def refuse(self, request: Request, refused: Refused) -> Reply:
        return Reply(b"", status=refused.status)


class NotingLater(Noting):
    """One whose replies have to be waited for, and take a share each; the clock stands still but for that."""

    now = 0.0

    def answer(self, request: Request) -> Any:
        return self._later(request)

    async def _later(self, request: Request) -> Reply:
        self.now += SHARE
        return super().answer(request)


@pytest.mark.parametrize("made", [Noting, NotingLater])
def test_one_request_of_another_is_not_behind_those_of_many_connections(
    strict: Live, monkeypatch: pytest.MonkeyPatch, made: type[Noting]
) -> None:
    noting = strict.service.server.application = made()
    if isinstance(noting, NotingLater):
        monkeypatch.setattr(turns, "SHARE", SHARE)
        monkeypatch.setattr(turns, "monotonic", lambda: noting.now)
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
