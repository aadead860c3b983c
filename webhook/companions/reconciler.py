"""Brings objects into the state that they should be in, one key at a time: whenever something has changed, and again.

There is no leader. Every replica does all of it, so what is done for a key has to be harmless when another replica does
the same at the same time: deterministic names, creation that may conflict, server-side apply.
A key that fails is tried again, later each time. Nothing of it ever reaches a review.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Any, Final, Generic, NoReturn

from webhook.client import wire
from webhook.client.calls import ClusterError
from webhook.companions.limits import MAX_RECONCILES_AT_ONCE
from webhook.companions.work_queue import Key, WorkQueue

# Seconds. The longest is for what fails all the time, such as for want of a right: each is a line in an audit log.
FIRST_DELAY: Final = 1.0
LAST_DELAY: Final = 300.0
DONE: Final = "done"
FAILED: Final = "failed"


class Reconciler(Generic[Key]):
    """Works on the keys that are added while `run` runs.

    `reconcile` looks at what is and at what should be, and says after how many seconds it wants to look again without
    having been asked to, or None. ClusterError, and any other exception, makes it be called again for that key.
    """

    results: Counter[str]
    """How often a key was worked on, by `DONE` and `FAILED`."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[Key], Awaitable[float | None]],
        *,
        log: Any,
        at_once: int = MAX_RECONCILES_AT_ONCE,
        uniform: Callable[[float, float], float] = random.uniform,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.name = name
        self.results = Counter({DONE: 0, FAILED: 0})
        self._reconcile = reconcile
        self._log = log
        self._at_once = at_once
        self._uniform = uniform
        self._clock = clock or asyncio.get_running_loop().time
        self._queue: WorkQueue[Key] = WorkQueue()
        self._added = asyncio.Event()
        self._failures: dict[Key, int] = {}
        self._last = ""

    @property
    def waiting(self) -> int:
        """Keys that should have been worked on by now."""
        return self._queue.ready(self._clock())

    @property
    def failing(self) -> int:
        """Keys that failed when they were last worked on."""
        return len(self._failures)

    @property
    def problem(self) -> str:
        """What is wrong, on one line for the operator; empty while nothing is."""
        return f"{self.failing} failed and will be tried again; the last: {self._last}" if self._failures else ""

    def add(self, key: Key, after: float = 0) -> None:
        """Work on `key`, now or after so many seconds."""
        self._queue.add(key, self._clock() + after)
        self._added.set()

    async def run(self) -> NoReturn:
        """Work, until cancelled."""
        free = asyncio.Semaphore(self._at_once)
        async with asyncio.TaskGroup() as group:
            while True:
                await free.acquire()
                task = group.create_task(self._work(await self._next()))
                task.add_done_callback(lambda _: free.release())

    async def _next(self) -> Key:
        while (key := self._queue.take(self._clock())) is None:
            self._added.clear()
            due = self._queue.next_due()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if due == inf else max(0, due - self._clock())):
                    await self._added.wait()
        return key

    async def _work(self, key: Key) -> None:
        try:
            again = await self._reconcile(key)
        except Exception as error:  # noqa: BLE001 - the other keys have to go on
            self._failed(key, error)
        else:
            self.results[DONE] += 1
            if self._failures.pop(key, 0) and not self._failures:
                self._log.info("companion recovered", companion=self.name)
            if again is not None:
                self.add(key, again)
        finally:
            self._queue.done(key)
            self._added.set()  # it may have been added meanwhile

    def _failed(self, key: Key, error: Exception) -> None:
        self.results[FAILED] += 1
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        ours = not isinstance(error, ClusterError)
        reason = wire.place(error) if ours else str(error)
        if failures == 1:
            tell = self._log.error if ours else self._log.warning
            tell("companion failed", companion=self.name, reason=reason)
        self._last = reason
        self.add(key, min(LAST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 30)) * self._uniform(0.5, 1))
