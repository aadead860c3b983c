"""Questions about own rules, answered: an expression that ends the worker costs its own value and no other.

Whoever did it is found by asking for each alone. It then rests, longer each time, so that nobody waits for it: in the
namespace of that job, as another tenant's jobs are not to go without a rule for it.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from math import inf
from time import monotonic
from typing import Final, Protocol

import msgspec

from webhook.cel.process import SILENCE_SECONDS, CannotStart, Worker, WorkerEnded
from webhook.kit.own_rules import Expression, Outcome, Question, encode

NOT_INSTALLED: Final = "own rules need the package cel-expr-python, which is not installed here"
LATE: Final = "what evaluates own rules did not answer in time"
FIRST_REST: Final = 10.0
LONGEST_REST: Final = 600.0
# Seconds until a worker that could not be started is started again.
_AGAIN: Final = 10.0
_MOST_RESTING: Final = 1_000

_questions = msgspec.json.Decoder(Question)
_outcomes = msgspec.json.Decoder(tuple[Outcome, ...])


class Asked(Protocol):
    """A worker."""

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        ...

    def ask(self, question: bytes, seconds: float) -> bytes:
        """The answer; WorkerEnded where there is none within so many seconds."""
        ...

    def end(self) -> None:
        """End it now."""
        ...


class _Rest(msgspec.Struct):
    until: float
    seconds: float
    why: str


@cache
def installed() -> bool:
    """Whether there is what evaluates: looked for once, as that searches all folders of packages."""
    return find_spec("cel_expr_python") is not None and find_spec("google.protobuf") is not None


class Engine:
    """Answers questions, one at a time; it starts its worker for the first."""

    def __init__(
        self,
        start: Callable[[], Asked] = Worker,
        *,
        clock: Callable[[], float] = monotonic,
        installed: Callable[[], bool] = installed,
    ) -> None:
        self.ended = 0
        """Workers that ended over an expression."""
        self._start = start
        self._clock = clock
        self._installed = installed
        self._worker: Asked | None = None
        self._resting: dict[tuple[str, Expression], _Rest] = {}  # by namespace
        self._down = (0.0, "")  # until when no worker is started, and why

    def evaluate(self, question: bytes, seconds: float = inf) -> tuple[Outcome, ...]:
        """What came of each expression of the question, in their order; never raises.

        All of them have so many seconds together, to which the start of the worker does not count.
        """
        asked = _questions.decode(question)
        if not self._installed():
            return tuple(Outcome(fault=NOT_INSTALLED, written_wrong=True) for _ in asked.expressions)
        namespace = _namespace(asked)
        found = {each: Outcome(fault=rest.why) for each in asked.expressions if (rest := self._rest(namespace, each))}
        found |= self._evaluate(asked, [each for each in asked.expressions if each not in found], seconds)
        return tuple(found[each] for each in asked.expressions)

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _evaluate(self, asked: Question, expressions: list[Expression], seconds: float) -> dict[Expression, Outcome]:
        if not expressions or seconds <= 0:
            return dict.fromkeys(expressions, Outcome(fault=LATE))
        question = encode(msgspec.structs.replace(asked, expressions=tuple(expressions)))
        try:
            worker = self._running()
        except CannotStart as error:
            return dict.fromkeys(expressions, Outcome(fault=f"nothing can be evaluated: {error}"))
        until = self._clock() + seconds
        try:
            answer = worker.ask(question, min(seconds, SILENCE_SECONDS))
        except WorkerEnded as ended:
            self._worker = None
            self.ended += 1
            if len(expressions) > 1:
                alone = (self._evaluate(asked, [each], until - self._clock()) for each in expressions)
                return {each: outcome for found in alone for each, outcome in found.items()}
            late = self._clock() >= until  # then it may have had less time than any expression has
            if not late:
                self._send_to_rest(_namespace(asked), expressions[0], str(ended))
            return {expressions[0]: Outcome(fault=LATE if late else str(ended))}
        return dict(zip(expressions, _outcomes.decode(answer), strict=True))

    def _running(self) -> Asked:
        """The worker, started where there is none; CannotStart."""
        until, why = self._down
        if self._worker is not None and not self._worker.alive:  # no expression did that
            self.close()
        if self._worker is None:
            if self._clock() < until:
                raise CannotStart(why)
            try:
                self._worker = self._start()
            except CannotStart as error:
                self._down = (self._clock() + _AGAIN, str(error))
                raise
        return self._worker

    def _rest(self, namespace: str, expression: Expression) -> _Rest | None:
        found = self._resting.get((namespace, expression))
        return found if found is not None and self._clock() < found.until else None

    def _send_to_rest(self, namespace: str, expression: Expression, why: str) -> None:
        before = self._resting.pop((namespace, expression), None)
        seconds = FIRST_REST if before is None else min(2 * before.seconds, LONGEST_REST)
        self._resting[namespace, expression] = _Rest(self._clock() + seconds, seconds, why)
        if len(self._resting) > _MOST_RESTING:
            del self._resting[next(iter(self._resting))]


def without_value(question: bytes, fault: str) -> tuple[Outcome, ...]:
    """The outcomes where none of the expressions has a value."""
    return (Outcome(fault=fault),) * len(_questions.decode(question).expressions)


def _namespace(asked: Question) -> str:
    return str(asked.request.get("namespace", ""))
