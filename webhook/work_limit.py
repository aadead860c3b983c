"""A limit on the processor time of one decision, in the server's main thread.

A timer counts processor time and sends a signal. Its handler raises TooExpensive in the decision. It interrupts Python
code, regular expressions and arithmetic with large integers, but not a long call of C code: limits on bytes and on
nested values protect from these.

The timer counts the time of all threads of the process, so the handler looks at the time of its own thread. An
exception that is raised in a callback may be lost, as in `__del__`, so the timer fires again and again.
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
    """From now on `limited` limits. To be called in the main thread, once every module is imported."""
    signal.signal(signal.SIGVTALRM, _decision.on_timer)
    _decision.armed = True


def limited(work: Callable[[], T], seconds: float = MAX_DECISION_SECONDS) -> T:
    """The result of `work`; TooExpensive when it takes too long. Without a limit in a process that is not armed."""
    if not _decision.armed:
        return work()
    try:
        _decision.until = time.thread_time() + seconds
        signal.setitimer(signal.ITIMER_VIRTUAL, WORK_CHECK_SECONDS, WORK_CHECK_SECONDS)
        result = work()
        _decision.on_timer()  # the CEL engine makes a fault of the rule of any exception
        return result
    finally:
        # Comes first: Python handles a signal after a call and not after an assignment, so none is raised from here on.
        _decision.until = inf
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def uncounted(work: Callable[[], T]) -> T:
    """The result of `work`, whose time does not count: it is for all jobs, and a job has no part in how long it takes.

    It is not interrupted, so it is done once. Its result must be stored.
    """
    if _decision.until == inf:
        return work()
    until, began = _decision.until, time.thread_time()
    _decision.until = inf
    try:
        return work()
    finally:
        _decision.until = until + time.thread_time() - began
