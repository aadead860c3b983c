"""The process that evaluates: `python -m webhook.cel.worker`, questions in and outcomes out, until its input ends.

A question comes with its length before it, and so does the answer. Memory and the processor time of each expression are
bounded by the operating system, which ends the process that exceeds them: no expression can put that off.
"""

import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import msgspec

from webhook.cel.environment import ExpressionError, activation, compiled
from webhook.cel.frames import LENGTH, MEMORY, SECONDS
from webhook.cel.job_defaults import with_defaults
from webhook.kit.own_rules import Expression, Outcome


class Asked(msgspec.Struct, rename="camel"):
    """A `Question`, its JSON read."""

    expressions: tuple[Expression, ...]
    object: dict[str, Any]
    old_object: dict[str, Any] | None = None
    request: dict[str, Any] = {}
    namespace_object: dict[str, Any] | None = None
    params: dict[str, Any] = {}
    job: dict[str, Any] | None = None


_questions = msgspec.json.Decoder(Asked)
_outcomes = msgspec.json.Encoder()


def answer(question: bytes, grant: Callable[[float], object] = lambda _: None) -> bytes:
    """What came of each expression of the question; `grant` gives each its seconds, and none at the end."""
    asked = _questions.decode(question)
    job = with_defaults(asked.object)
    old = None if asked.old_object is None else with_defaults(asked.old_object)
    others = {
        "request": asked.request,
        "namespaceObject": asked.namespace_object,
        "params": asked.params,
        "job": asked.job,
    }
    new = activation({"object": job, "oldObject": old, **others})
    stored = None
    outcomes = []
    for expression in asked.expressions:
        grant(SECONDS)
        outcome = evaluate(expression, new)
        if old is not None and not expression.of_change and (outcome.fault or not outcome.holds):
            stored = stored or activation({"object": old, "oldObject": old, **others})
            before = evaluate(expression, stored)
            standing = (before.holds, bool(before.fault)) == (outcome.holds, bool(outcome.fault))
            outcome = msgspec.structs.replace(outcome, standing=standing)
        outcomes.append(outcome)
    grant(0)
    return _outcomes.encode(outcomes)


def evaluate(expression: Expression, variables: Any) -> Outcome:
    """What comes of an expression with these variables."""
    for source in (expression.match, expression.source):
        if not source:
            continue
        program = compiled(source)
        if isinstance(program, ExpressionError):
            return Outcome(fault=str(program), written_wrong=True)
        try:
            holds = program.holds(variables)
        except ExpressionError as error:
            return Outcome(fault=str(error))
        if not holds:
            return Outcome(holds=source is expression.match)
    return Outcome()


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Say that it is there, then answer until the questions end."""
    answers.write(LENGTH.pack(0))
    answers.flush()
    while len(head := questions.read(LENGTH.size)) == LENGTH.size:
        found = answer(questions.read(LENGTH.unpack(head)[0]), partial(signal.setitimer, signal.ITIMER_PROF))
        answers.write(LENGTH.pack(len(found)) + found)
        answers.flush()


def main() -> None:
    """Bound this process, and serve."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it, and its input ends then
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
