"""A limit on the processor time of one decision, in the server's main thread.

A timer measures processor time and sends a signal, and the signal's handler raises TooExpensive in the decision. The
exception interrupts Python code, regular expressions and arithmetic with large integers, but not a long call of C code:
limits on bytes and on nested values prevent such calls.

The timer measures the time of all threads of the process, so the handler checks the time of its own thread. Python
ignores an exception in some callbacks, such as `__del__`, so the timer fires repeatedly.
"""

import signal
import time
from collections.abc import Callable
from math import inf
from typing import TypeVar

from webhook.limits import MAX_DECISION_SECONDS, WORK_CHECK_SECONDS

T = TypeVar("T")


class TooExpensive(BaseException):
    """A decision took more processor time than allowed. `except Exception` in a rule or plug-in does not catch it."""


class _Decision:
    """The current decision."""

    __slots__ = ("armed", "until")

    def __init__(self) -> None:
        self.armed = False
        """Whether `arm` was called."""
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
        _decision.on_timer()  # the CEL engine may have turned TooExpensive into an error of the rule
        return result
    finally:
        # This assignment is first: Python runs signal handlers after calls, not after assignments, so no handler can
        # raise before it.
        _decision.until = inf
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def uncounted(work: Callable[[], T]) -> T:
    """The result of `work`, whose time is not charged to the current decision, because other jobs use the result too.

    The caller must store the result, so that `work` runs once. `work` is not interrupted.
    """
    if _decision.until == inf:
        return work()
    until, began = _decision.until, time.thread_time()
    _decision.until = inf
    try:
        return work()
    finally:
        _decision.until = until + time.thread_time() - began
