"""The process that evaluates: `python -m webhook.cel.worker`, questions in and outcomes out, until its input ends.

A question comes with its length before it, and so does the answer. Memory and the processor time of each expression are
bounded by the operating system, which ends the process that exceeds them: no expression can put that off.
"""

import re
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, Final

import msgspec

from webhook.cel.environment import ExpressionError, activation, compiled
from webhook.cel.frames import LENGTH, MEMORY, SECONDS
from webhook.cel.job_defaults import with_defaults
from webhook.kit.own_rules import Expression, Outcome, Question

_questions = msgspec.json.Decoder(Question)
_objects = msgspec.json.Decoder(dict[str, Any] | None)
_outcomes = msgspec.json.Encoder()
_LONG: Final = re.compile(rb"[0-9]{19}")
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError)


def answer(question: bytes, grant: Callable[[float], object] = lambda _: None) -> bytes:
    """What came of each expression of the question; `grant` gives each its seconds, and none at the end."""
    asked = _questions.decode(question)
    try:
        job, old = (each and with_defaults(each) for each in map(read, (asked.object, asked.old_object)))
    except _UNREADABLE as error:
        return _outcomes.encode([Outcome(fault=f"the job cannot be read: {error}")] * len(asked.expressions))
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


def read(document: msgspec.Raw) -> dict[str, Any] | None:
    """The object as the API server reads it: a whole number beyond 64 bits is a double."""
    found: dict[str, Any] | None = _objects.decode(document)
    if _LONG.search(memoryview(document)):
        _make_doubles(found)
    return found


def _make_doubles(value: Any) -> None:
    inside = [value]
    while inside:
        each = inside.pop()
        for key, item in each.items() if isinstance(each, dict) else enumerate(each):
            if isinstance(item, dict | list):
                inside.append(item)
            elif isinstance(item, int) and not -(2**63) <= item < 2**63:
                each[key] = float(item)


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
