"""Tries a policy's expressions in a separate process with limits, before the policy is activated."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from webhook.cel import limits
from webhook.cel.evaluation import NOT_INSTALLED, installed
from webhook.kit.custom_rules import Outcome

SIMPLER: Final = "for the largest job that custom rules judge. Use fewer loops"
TOO_SLOW: Final = f"takes more than {limits.MAX_TRIAL_SECONDS * 1000:.0f} ms of processor time {SIMPLER}"
TOO_MUCH_MEMORY: Final = f"takes more than {limits.MAX_TRIAL_BYTES >> 20} MiB of memory {SIMPLER}"
_ENDED: Final = {
    -signal.SIGPROF: TOO_SLOW,
    -signal.SIGABRT: TOO_MUCH_MEMORY,
    -signal.SIGSEGV: TOO_MUCH_MEMORY,  # no memory is left for the stack
    -signal.SIGBUS: TOO_MUCH_MEMORY,
}
_ENVIRONMENT: Final = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


class TrialFailed(Exception):
    """The trial failed for a reason that is not in the expressions."""


class Trial(msgspec.Struct):
    sources: Sequence[str]
    params: Mapping[str, Any] = {}


def try_expressions(trial: Trial, seconds: float | None = None) -> list[Outcome]:
    """The outcome of each expression for a usual job. The outcome is a fault if the largest job takes too long.

    If the trial's process dies at an expression, the list ends with the fault of this expression. Raises
    TrialFailed, and TimeoutError after `seconds`.
    """
    if not installed():
        return [Outcome(fault=NOT_INSTALLED, written_wrong=True)] * len(trial.sources)
    environment = {
        name: value for name, value in os.environ.items() if name in _ENVIRONMENT or name.startswith("PYTHON")
    }
    try:
        process = subprocess.run(
            [sys.executable, "-m", "webhook.cel.trial_process"],
            input=msgspec.json.encode(trial),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    except OSError as error:
        raise TrialFailed(f"the custom rules could not be tried: {error}") from None
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in process.stdout.splitlines()]
    if len(outcomes) < len(trial.sources):
        if process.returncode not in _ENDED:
            raise TrialFailed(f"the custom rules could not be tried: the process ended with {process.returncode}")
        outcomes.append(Outcome(fault=_ENDED[process.returncode], written_wrong=True))
    return outcomes
