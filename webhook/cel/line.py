"""Whose question is evaluated next: of the namespaces that have some waiting, each has one turn, then the next.

Else whoever asks often keeps everybody waiting, and a namespace's many jobs cost others the time for their rules.
"""

import asyncio
from collections import deque
from typing import Final

# Of one namespace: more than are evaluated in the time of a review, where each takes its tenth of a second.
MOST_OF_ONE: Final = 128
MOST: Final = 1024


class Busy(Exception):
    """There are too many before it: it has not begun, so nothing is known of it."""

    def __init__(self) -> None:
        super().__init__("too many reviews wait for own rules")


class Line:
    """Those that wait, and the one whose turn it is."""

    def __init__(self) -> None:
        self._at_work: str | None = None
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by namespace, in the order of their turns

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def turn(self, namespace: str, seconds: float | None) -> None:
        """Return when it is its turn, which lasts until `over`; Busy where that is not within `seconds`."""
        if self._at_work is None:
            self._at_work = namespace
            return
        if len(self._waiting.get(namespace, ())) >= MOST_OF_ONE or len(self) >= MOST:
            raise Busy
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(mine)
        try:
            begun, _ = await asyncio.wait((mine,), timeout=seconds)
        except asyncio.CancelledError:
            self._leave(namespace, mine)
            raise
        if not begun:
            self._leave(namespace, mine)
            raise Busy

    def over(self) -> None:
        """The turn is over, and the next one's begins."""
        before, self._at_work = self._at_work, None
        if before in self._waiting:  # behind those that came while it was at work
            self._waiting[before] = self._waiting.pop(before)
        for namespace in self._waiting:
            self._at_work = namespace
            first = self._waiting[namespace][0]
            self._remove(namespace, first)
            first.set_result(None)
            return

    def _leave(self, namespace: str, mine: asyncio.Future[None]) -> None:
        if mine.done():  # its turn came in that moment
            self.over()
        else:
            self._remove(namespace, mine)

    def _remove(self, namespace: str, one: asyncio.Future[None]) -> None:
        self._waiting[namespace].remove(one)
        if not self._waiting[namespace]:
            del self._waiting[namespace]
