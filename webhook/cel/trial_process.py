"""The process that tries expressions. It reads a `Trial` and writes a line for each outcome."""

import os
import re
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from time import thread_time
from typing import Any, Final

import msgspec

from webhook.cel import limits
from webhook.cel.environment import ExpressionError, Program, activation
from webhook.cel.evaluation import read, with_defaults
from webhook.cel.trial import TOO_SLOW, Trial
from webhook.cel.trial_jobs import largest, largest_facts, usual
from webhook.kit.custom_rules import Outcome

_STATM: Final = Path("/proc/self/statm")
_ENDS_EARLY: Final = re.compile(r"\.(?:all|exists)\s*\(")
_TIMES: Final = 3
"""Runs of each expression. The fastest run counts, because other programs may slow down some runs."""


def main() -> None:
    """Exceeding a limit ends this process."""
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)
    variables = usual(trial.params)
    common = variables.without_objects()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for source in trial.sources:
        of_usual = {**common, "object": read(variables.object), "oldObject": None}
        job = with_defaults(largest(source))
        of_largest = {**common, "object": job, "oldObject": job, "job": largest_facts(variables.job)}
        _limit()
        try:
            outcome = _tried(source, of_usual, of_largest)
        except MemoryError:
            os.abort()
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
        sys.stdout.buffer.flush()


def _limit() -> None:
    """Sets limits of the operating system, because no code in the process can stop an expression."""
    if _STATM.exists():  # missing on macOS, where only the time is limited
        used = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limits.MAX_TRIAL_BYTES, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, limits.TRIAL_KILLED_SECONDS)


def _tried(source: str, of_usual: Mapping[str, Any], of_largest: Mapping[str, Any]) -> Outcome:
    try:
        program = Program(source)
    except ExpressionError as error:
        return Outcome(fault=str(error), written_wrong=True)
    try:
        outcome = Outcome(holds=program.holds(activation(of_usual)))
    except ExpressionError as error:
        outcome = Outcome(fault=str(error))
    # `all` and `exists` stop at the item that decides; `exists_one` visits every item.
    whole = Program(_ENDS_EARLY.sub(".exists_one(", source))
    if max(_seconds(program, of_largest), _seconds(whole, of_largest)) > limits.MAX_TRIAL_SECONDS:
        return Outcome(fault=TOO_SLOW, written_wrong=True)
    return outcome


def _seconds(program: Program, variables: Mapping[str, Any]) -> float:
    """The processor time of an evaluation, including the conversion of the variables."""
    times: list[float] = []
    while len(times) < _TIMES and (not times or min(times) > limits.MAX_TRIAL_SECONDS):
        began = thread_time()
        try:
            program.holds(activation(variables))
        except ExpressionError as error:
            if str(error).startswith("MemoryError"):
                raise MemoryError from None
        times.append(thread_time() - began)
    return min(times)


if __name__ == "__main__":
    main()
