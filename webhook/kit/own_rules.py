"""Own rules of a policy: what is asked of the engine that evaluates their expressions, and what it answers.

A verdict never waits for the engine. It raises `Unanswered` with the question; whoever asked for the verdict has it
answered, in its own way of waiting, and asks again with the answer.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

PREFIX: Final = "custom"
"""The setting that own rules stand in, and what their names begin with in messages, metrics and exemptions."""


def full_id(own_id: str) -> str:
    """What the own rule is called outside of the policy."""
    return f"{PREFIX}/{own_id}"


def is_own(rule_id: object) -> bool:
    """Whether a rule is called like an own rule, whatever policies there are."""
    return isinstance(rule_id, str) and rule_id.startswith(f"{PREFIX}/") and len(rule_id) > len(PREFIX) + 1


class Expression(msgspec.Struct, frozen=True, array_like=True):
    """What one rule has evaluated."""

    source: str
    match: str = ""
    """Whether the rule is about the job at all; empty for every job."""
    of_change: bool = False
    """It looks at the change, so an update cannot have found the job that way."""


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """Expressions, and the JSON of the variables that they are evaluated with."""

    expressions: tuple[Expression, ...]
    object: msgspec.Raw
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    request: Mapping[str, Any] = {}
    namespace_object: Mapping[str, Any] | None = None
    params: Mapping[str, Any] = {}
    job: Any = None


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """What came of one expression."""

    holds: bool = True
    standing: bool = False
    """It does not hold of the stored job either."""
    fault: str = ""
    """Why it has no value; it then counts as holding."""
    written_wrong: bool = False
    """The fault is there whatever the job is."""


Answers = Mapping[bytes, tuple[Outcome, ...]]
"""By question, as it is encoded: an answer is of no use for another job, request or policy."""


class Unanswered(Exception):
    """The verdict depends on own rules that nobody has evaluated."""

    def __init__(self, question: bytes) -> None:
        super().__init__("own rules have not been evaluated")
        self.question = question


T = TypeVar("T")
Evaluate = Callable[[bytes], tuple[Outcome, ...]]


def answered(verdict: Callable[[Answers], T], evaluate: Evaluate) -> T:
    """The verdict, once everything that it asks is answered."""
    answers: dict[bytes, tuple[Outcome, ...]] = {}
    while True:
        try:
            return verdict(answers)
        except Unanswered as asked:
            answers[asked.question] = evaluate(asked.question)


encode = msgspec.json.Encoder().encode
