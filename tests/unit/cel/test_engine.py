"""What ends the worker costs its own value alone; what cannot be evaluated is told, and never raised."""

from typing import Any

import msgspec
import pytest

from tests.support.own_rules import question
from webhook.cel.engine import FIRST_REST, LATE, NOT_INSTALLED, Engine
from webhook.cel.process import CannotStart, WorkerEnded
from webhook.kit.own_rules import Expression, Outcome, Question, encode

HOLDS = Outcome()


class Worker:
    """Ends over expressions that are called so."""

    started = 0
    alive = True
    asked: list[list[str]]

    def __init__(self) -> None:
        Worker.started += 1
        Worker.asked = getattr(Worker, "asked", [])

    def ask(self, data: bytes, seconds: float) -> bytes:
        expressions = msgspec.json.decode(data, type=Question).expressions
        Worker.asked.append([each.source for each in expressions])
        if any(each.source == "bomb" for each in expressions):
            raise WorkerEnded("it takes more than 512 MiB of memory")
        return msgspec.json.encode([Outcome(holds=each.source != "false") for each in expressions])

    def end(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _anew() -> None:
    Worker.started, Worker.asked = 0, []


def ask(engine: Engine, *sources: str) -> tuple[Outcome, ...]:
    return engine.evaluate(encode(question(*sources)))


def make(clock: Any = lambda: 0.0) -> Engine:
    return Engine(Worker, clock=clock, installed=lambda: True)


def test_one_question_for_all_expressions() -> None:
    assert ask(make(), "true", "false") == (HOLDS, Outcome(holds=False))
    assert Worker.asked == [["true", "false"]]


def test_an_expression_that_ends_the_worker_costs_its_own_value() -> None:
    engine = make()
    assert ask(engine, "true", "bomb", "false") == (
        HOLDS,
        Outcome(fault="it takes more than 512 MiB of memory"),
        Outcome(holds=False),
    )
    assert engine.ended == 2  # with the others, and alone


def test_a_worker_that_something_else_has_ended_costs_nothing() -> None:
    engine = make()
    ask(engine, "true")
    Worker.asked.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "alive", False)
        assert ask(engine, "false") == (Outcome(holds=False),)
    assert (Worker.started, engine.ended) == (2, 0)


def test_it_rests_and_comes_again_for_longer_each_time() -> None:
    now = 0.0
    engine = make(lambda: now)
    ask(engine, "bomb")
    Worker.asked.clear()
    assert ask(engine, "true", "bomb")[1].fault == "it takes more than 512 MiB of memory"
    assert Worker.asked == [["true"]]
    now = FIRST_REST
    ask(engine, "bomb")
    now = 2.9 * FIRST_REST
    Worker.asked.clear()
    ask(engine, "bomb")
    assert Worker.asked == []
    now = 3 * FIRST_REST
    ask(engine, "bomb")
    assert Worker.asked == [["bomb"]]


def test_it_rests_in_the_namespace_of_that_job_alone() -> None:
    engine = make()
    for namespace in ("mine", "theirs"):
        engine.evaluate(encode(question("bomb", request={"namespace": namespace})))
    engine.evaluate(encode(question("bomb", request={"namespace": "mine"})))
    assert Worker.asked == [["bomb"], ["bomb"]]


def test_the_same_source_with_another_match_is_another_expression() -> None:
    engine = make()
    ask(engine, "bomb")
    found = engine.evaluate(encode(question(Expression("bomb", "never"))))
    assert len(Worker.asked) == 2
    assert found[0].fault


def test_a_worker_that_does_not_start_is_the_fault_of_no_expression() -> None:
    now, tries = 0.0, 0

    def start() -> Worker:
        nonlocal tries
        tries += 1
        raise CannotStart("no memory")

    engine = Engine(start, clock=lambda: now, installed=lambda: True)
    assert ask(engine, "true") == (Outcome(fault="nothing can be evaluated: no memory"),)
    ask(engine, "true")
    assert tries == 1
    now = 10.0
    ask(engine, "true")
    assert tries == 2


class Slow(Worker):
    """Each question takes all the time that it may, at most so many seconds."""

    now = 0.0
    most = 5.0

    def ask(self, data: bytes, seconds: float) -> bytes:
        Slow.now += min(seconds, Slow.most)
        Worker.asked.append([each.source for each in msgspec.json.decode(data, type=Question).expressions])
        raise WorkerEnded("it takes more than 0.25 s of processor time")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(Slow, "now", 0.0)
    return Engine(Slow, clock=lambda: Slow.now, installed=lambda: True)


def test_many_expressions_have_their_time_together(slow: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was asked alone, however long that took, and everybody else waited."""
    monkeypatch.setattr(Slow, "most", 0.25)
    sources = [f"bomb {i}" for i in range(100)]
    found = slow.evaluate(encode(question(*sources)), seconds=1.0)
    assert Worker.asked == [sources, ["bomb 0"], ["bomb 1"], ["bomb 2"]]
    assert [each.fault for each in found[:2]] == ["it takes more than 0.25 s of processor time"] * 2
    assert {each.fault for each in found[2:]} == {LATE}


def test_what_had_less_time_than_an_expression_has_does_not_rest(slow: Engine) -> None:
    for _ in range(2):
        assert slow.evaluate(encode(question("true")), seconds=0.1) == (Outcome(fault=LATE),)
    assert Worker.asked == [["true"]] * 2


def test_the_start_of_the_worker_takes_none_of_that_time(slow: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> Worker:
        Slow.now += 20
        return Worker()

    monkeypatch.setattr(slow, "_start", start)
    assert slow.evaluate(encode(question("true")), seconds=1.0) == (HOLDS,)


def test_where_the_package_is_missing_every_expression_is_refused() -> None:
    engine = Engine(Worker, installed=lambda: False)
    assert ask(engine, "true") == (Outcome(fault=NOT_INSTALLED, written_wrong=True),)
    assert Worker.started == 0


def test_closing_ends_the_worker_and_the_next_question_starts_one() -> None:
    engine = make()
    ask(engine, "true")
    engine.close()
    engine.close()
    ask(engine, "true")
    assert Worker.started == 2
