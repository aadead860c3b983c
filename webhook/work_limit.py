"""A limit on the processor time of one decision, in the server's main thread.

A timer counts processor time and sends a signal. Its handler raises TooExpensive in the decision. It interrupts Python
code, regular expressions and arithmetic with large integers, but not a long call of C code: limits on bytes and on
nested values prevent such calls.

The timer counts the time of all threads of the process, so the handler checks the time of its own thread. An
exception that is raised in a callback may be lost, as in `__del__`, so the timer fires repeatedly.
"""

import signal
import time
from collections.abc import Callable
from math import inf
from typing import TypeVar

from webhook.limits import MAX_DECISION_SECONDS, WORK_CHECK_SECONDS

T = TypeVar("T")


class TooExpensive(BaseException):
    """A decision took more processor time than allowed. No `except Exception` of a rule or plug-in stops it."""


class _Decision:
    """The decision that is being made."""

    __slots__ = ("armed", "until")

    def __init__(self) -> None:
        self.armed = False
        """Whether the process has a limit."""
        self.until = inf
        """The thread's processor time at which the decision ends; infinite between decisions."""

    def on_timer(self, *_: object) -> None:
        """The signal's handler."""
        if time.thread_time() >= self.until:
            raise TooExpensive


_decision = _Decision()


def arm() -> None:
    """Make `limited` effective. Call it in the main thread, after every module is imported."""
    signal.signal(signal.SIGVTALRM, _decision.on_timer)
    _decision.armed = True


def limited(work: Callable[[], T], seconds: float = MAX_DECISION_SECONDS) -> T:
    """The result of `work`; TooExpensive if it takes too long. There is no limit before `arm`."""
    if not _decision.armed:
        return work()
    try:
        _decision.until = time.thread_time() + seconds
        signal.setitimer(signal.ITIMER_VIRTUAL, WORK_CHECK_SECONDS, WORK_CHECK_SECONDS)
        result = work()
        _decision.on_timer()  # the CEL engine turns any exception into an error of the rule
        return result
    finally:
        # Comes first: Python handles signals after calls, not after assignments, so none is raised from here on.
        _decision.until = inf
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def uncounted(work: Callable[[], T]) -> T:
    """The result of `work`, whose time is not charged to the current job: other jobs need the result too.

    The caller must store the result, so that `work` runs once. It is not interrupted.
    """
    if _decision.until == inf:
        return work()
    until, began = _decision.until, time.thread_time()
    _decision.until = inf
    try:
        return work()
    finally:
        _decision.until = until + time.thread_time() - began
