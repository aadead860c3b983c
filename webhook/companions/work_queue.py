"""Keys that wait for their turn: each is in it once, and is never worked on twice at a time. No clock, no I/O.

As client-go's workqueue: what is added while it is worked on is worked on once more afterwards.
"""

import heapq
from collections.abc import Hashable
from itertools import count
from math import inf
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class WorkQueue(Generic[Key]):
    """Keys, each with the time from which on it may be taken."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._at_work: set[Key] = set()
        # May hold a key more than once: what `_due` says counts.
        self._heap: list[tuple[float, int, Key]] = []
        self._order = count()

    def __len__(self) -> int:
        """Keys that wait or are worked on."""
        return len(self._due.keys() | self._at_work)

    def ready(self, now: float) -> int:
        """Keys whose time has come, those that are worked on included."""
        return len(self._at_work | {key for key, due in self._due.items() if due <= now})

    def add(self, key: Key, due: float) -> None:
        """`key` may be taken from `due` on, or earlier if it was added for an earlier time."""
        if due < self._due.get(key, inf):
            self._due[key] = due
            if key not in self._at_work:
                self._wait(key)

    def take(self, now: float) -> Key | None:
        """The key that is due for the longest time, to be worked on until `done`."""
        self._clean()
        if not self._heap or self._heap[0][0] > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        self._at_work.add(key)
        return key

    def done(self, key: Key) -> None:
        """`key` is not worked on any more."""
        self._at_work.discard(key)
        if key in self._due:
            self._wait(key)

    def next_due(self) -> float:
        """When there will be something to take; infinite if nothing waits."""
        self._clean()
        return self._heap[0][0] if self._heap else inf

    def _wait(self, key: Key) -> None:
        heapq.heappush(self._heap, (self._due[key], next(self._order), key))

    def _clean(self) -> None:
        """Drop entries at the front that do not count any more."""
        while self._heap and (self._heap[0][2] in self._at_work or self._due.get(self._heap[0][2]) != self._heap[0][0]):
            heapq.heappop(self._heap)
