"""Whose question is evaluated when, and what becomes of those that have no turn."""

import asyncio
import threading
from collections.abc import AsyncIterator
from math import inf

import msgspec
import pytest

from tests.support.own_rules import question
from webhook.cel import line
from webhook.cel.engine import LATE, Engine
from webhook.cel.evaluator import MOST_SECONDS, Evaluator
from webhook.cel.line import Busy
from webhook.kit.own_rules import Outcome, Question, encode


class Held(Engine):
    """Answers one question each time that the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.seconds: list[float] = []
        self.go = threading.Semaphore(0)
        self.has_begun = threading.Event()

    def evaluate(self, question: bytes, seconds: float = inf) -> tuple[Outcome, ...]:
        self.begun.append(msgspec.json.decode(question, type=Question).expressions[0].source)
        self.seconds.append(seconds)
        self.has_begun.set()
        self.go.acquire()
        return (Outcome(),)


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    evaluator = Evaluator(Held())
    yield evaluator
    held(evaluator).go.release(1000)
    await evaluator.close()


def held(evaluator: Evaluator) -> Held:
    assert isinstance(evaluator.engine, Held)
    return evaluator.engine


async def ask(
    evaluator: Evaluator, *names: str, namespace: str, wait: float | None = None
) -> list[asyncio.Task[tuple[Outcome, ...]]]:
    """A question by each name, all of them at work or in the line."""
    tasks = [
        asyncio.create_task(evaluator.evaluate(encode(question(name)), namespace=namespace, wait=wait))
        for name in names
    ]
    await asyncio.sleep(0)
    await asyncio.to_thread(held(evaluator).has_begun.wait)
    return tasks


async def test_each_namespace_has_its_turn_whatever_another_asks(evaluator: Evaluator) -> None:
    """All that somebody had asked before came first."""
    tasks = await ask(evaluator, *(f"flood {i}" for i in range(4)), namespace="flood")
    tasks += await ask(evaluator, "a 0", "a 1", namespace="a")
    tasks += await ask(evaluator, "b 0", namespace="b")
    held(evaluator).go.release(len(tasks))
    assert await asyncio.gather(*tasks) == [(Outcome(),)] * len(tasks)
    assert held(evaluator).begun == ["flood 0", "a 0", "b 0", "flood 1", "a 1", "flood 2", "flood 3"]


async def test_what_has_no_turn_in_time_has_no_answer_and_is_not_evaluated(evaluator: Evaluator) -> None:
    first, *_ = await ask(evaluator, "first", namespace="a")
    late, *_ = await ask(evaluator, "late", namespace="b", wait=0)
    with pytest.raises(Busy):
        await late
    held(evaluator).go.release(2)
    await first
    await evaluator.evaluate(encode(question("next")), namespace="b")
    assert held(evaluator).begun == ["first", "next"]


async def test_time_counts_from_the_turn_on(evaluator: Evaluator) -> None:
    first, *_ = await ask(evaluator, "first", namespace="a")
    second = asyncio.create_task(evaluator.evaluate(encode(question("second")), namespace="a", seconds=60.0))
    held(evaluator).go.release(2)
    await asyncio.gather(first, second)
    assert held(evaluator).seconds == [MOST_SECONDS, 60.0]


async def test_one_that_takes_too_long_has_no_value_and_the_next_begins_after_it(evaluator: Evaluator) -> None:
    assert await evaluator.evaluate(encode(question("slow")), namespace="a", seconds=0.01) == (Outcome(fault=LATE),)
    behind, *_ = await ask(evaluator, "behind", namespace="a")
    for _ in range(3):
        await asyncio.sleep(0)
    assert held(evaluator).begun == ["slow"], "the thread is not free"
    held(evaluator).go.release(2)
    assert await behind == (Outcome(),)


async def test_one_that_nobody_waits_for_any_more_leaves_the_line(evaluator: Evaluator) -> None:
    first, given_up, last = await ask(evaluator, "first", "given up", "last", namespace="a")
    given_up.cancel()
    held(evaluator).go.release(3)
    await asyncio.gather(first, last)
    assert held(evaluator).begun == ["first", "last"]


async def test_a_turn_that_comes_as_its_owner_gives_up_is_the_next_ones() -> None:
    turns = line.Line()
    await turns.turn("a", None)
    second, third = (asyncio.create_task(turns.turn("a", None)) for _ in range(2))
    await asyncio.sleep(0)
    turns.over()
    second.cancel()
    await third
    assert second.cancelled()
    turns.over()
    await turns.turn("b", 0)


@pytest.mark.parametrize(("bound", "also_others"), [("MOST_OF_ONE", False), ("MOST", True)])
async def test_so_many_wait_and_no_more(
    evaluator: Evaluator, bound: str, also_others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, bound, 2)
    tasks = await ask(evaluator, "at work", "a 0", "a 1", namespace="a")
    with pytest.raises(Busy):
        await evaluator.evaluate(encode(question("a 2")), namespace="a")
    others = await ask(evaluator, "b", namespace="b")
    held(evaluator).go.release(4)
    await asyncio.gather(*tasks)
    found = await asyncio.gather(*others, return_exceptions=True)
    assert isinstance(found[0], Busy) is also_others
