"""Brings objects into their desired state, one key at a time, after each change and periodically.

Every replica works on every key, perhaps at the same time as another replica. Controllers therefore use deterministic
names, creation that may conflict, and server-side apply. A failed key is tried again with growing delays.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NoReturn, TypeVar

from webhook.client import wire
from webhook.client.calls import Client, ClusterError
from webhook.controllers.limits import MAX_CALLS_AT_ONCE, MAX_CALLS_PER_SECOND, MAX_RECONCILES_AT_ONCE


class PacedClient:
    """A client with a rate limit for its calls."""

    requests: int = 0

    def __init__(self, api: Client, *, rate: float = MAX_CALLS_PER_SECOND, burst: int = MAX_CALLS_AT_ONCE) -> None:
        self._api = api
        self._rate = rate
        self._burst = burst
        self._clock = asyncio.get_running_loop().time
        self._full = self._clock()

    async def request(
        self, method: str, path: str, body: dict[str, Any] | list[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """Like `Client.request`, but waits until the rate allows the call."""
        now = self._clock()
        # The generic cell rate algorithm: `_full` is when the bucket would be full again without further calls.
        self._full = max(self._full, now) + 1 / self._rate
        if (wait := self._full - now - self._burst / self._rate) > 0:
            await asyncio.sleep(wait)
        self.requests += 1
        return await self._api.request(method, path, body)


# Seconds. The longest delay is for permanent failures such as a missing permission: each attempt is a line in the
# cluster's audit log.
FIRST_DELAY: Final = 1.0
LAST_DELAY: Final = 300.0
FIRST_PAUSE: Final = 1.0  # seconds before a reverted change is made again
FORGOTTEN: Final = 3600.0  # seconds without a write after which the delay starts again from the minimum
DONE: Final = "done"
FAILED: Final = "failed"

Key = TypeVar("Key", bound=Hashable)


@dataclass(eq=False)
class Reconciler(Generic[Key]):
    """Calls `reconcile` for added keys while `run` runs, never twice at the same time for a key.

    `reconcile` returns the seconds until its next call for the key, or None. It is also called again after an
    exception, and if the key is added during a call.
    """

    name: str
    reconcile: Callable[[Key], Awaitable[float | None]]
    log: Any = field(kw_only=True)
    at_once: int = field(default=MAX_RECONCILES_AT_ONCE, kw_only=True)
    uniform: Callable[[float, float], float] = field(default=random.uniform, kw_only=True)

    def __post_init__(self) -> None:
        self.results = Counter({DONE: 0, FAILED: 0})
        """Calls of `reconcile` by outcome."""
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._ready: set[Key] = set()
        self._at_work: set[Key] = set()
        self._queue: asyncio.Queue[Key] = asyncio.Queue()  # ready and not in progress
        self._failures: dict[Key, int] = {}
        self._last = ""

    @property
    def waiting(self) -> int:
        """The number of due keys whose call has not ended."""
        return len(self._ready | self._at_work)

    @property
    def failing(self) -> int:
        """The number of keys whose last call failed."""
        return len(self._failures)

    @property
    def problem(self) -> str:
        """One line for the administrator; empty if there is no problem."""
        return f"{self.failing} failed and will be tried again; the last: {self._last}" if self._failures else ""

    @property
    def idle(self) -> bool:
        """Whether no key is due, now or later."""
        return not (self._ready or self._at_work or self._timers)

    def add(self, key: Key, after: float = 0) -> None:
        """Work on `key` after this many seconds. The earliest time wins."""
        due, timer = self._loop.time() + after, self._timers.get(key)
        if key in self._ready or (timer is not None and timer.when() <= due):
            return
        if timer is not None:
            timer.cancel()
        if after > 0:
            self._timers[key] = self._loop.call_at(due, self._due, key)
        else:
            self._due(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.at_once):
                group.create_task(self._work())

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self._ready.add(key)
        if key not in self._at_work:
            self._queue.put_nowait(key)

    async def _work(self) -> NoReturn:
        while True:
            key = await self._queue.get()
            self._ready.discard(key)
            self._at_work.add(key)
            try:
                again = await self.reconcile(key)
            except Exception as error:  # noqa: BLE001 - the work on other keys must continue
                self._failed(key, error)
            else:
                self.results[DONE] += 1
                if self._failures.pop(key, 0) and not self._failures:
                    self.log.info("controller recovered", companion=self.name)
                if again is not None:
                    self.add(key, again)
            finally:
                self._at_work.discard(key)
                if key in self._ready:  # the key was added during the call
                    self._queue.put_nowait(key)

    def _failed(self, key: Key, error: Exception) -> None:
        self.results[FAILED] += 1
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        ours = not isinstance(error, ClusterError)
        self._last = wire.place(error) if ours else str(error)
        if failures == 1:
            tell = self.log.error if ours else self.log.warning
            tell("controller failed", companion=self.name, reason=self._last)
        self.add(key, min(LAST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 30)) * self.uniform(0.5, 1))


class Restraint(Generic[Key]):
    """Slows down writes that another client keeps reverting. The pauses grow to a few minutes.

    The other client may be a replica with a different policy, or an operator with different defaults. All times must be
    from the same clock.
    """

    def __init__(self) -> None:
        self._done: dict[Key, tuple[int, float]] = {}

    def wait(self, key: Key, now: float) -> float:
        """Seconds until the next write is allowed; 0 if it is allowed now."""
        times, last = self._done.get(key, (0, now))
        pause = min(LAST_DELAY, FIRST_PAUSE * 2 ** min(times - 1, 30)) if times else 0
        return max(0.0, last + pause - now)

    def note(self, key: Key, now: float) -> None:
        times, last = self._done.get(key, (0, now))
        self._done[key] = (1 if now - last > FORGOTTEN else times + 1, now)

    def forget(self, key: Key) -> None:
        self._done.pop(key, None)
