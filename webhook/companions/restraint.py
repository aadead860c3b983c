"""How soon something is done once more, that somebody else undoes again and again.

That may be another replica with another policy, or an operator that has its own idea of an object: a fight over it gets
slower, and comes to one write in some minutes.
"""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

# Seconds: the first pause, the longest one, and the quiet time after which all is forgotten.
FIRST: Final = 1.0
LONGEST: Final = 300.0
FORGOTTEN: Final = 3600.0

Key = TypeVar("Key", bound=Hashable)


class Restraint(Generic[Key]):
    """What was done, by key. All times are those of one clock."""

    def __init__(self) -> None:
        self._done: dict[Key, tuple[int, float]] = {}

    def wait(self, key: Key, now: float) -> float:
        """Seconds until it may be done for `key` once more; 0 for now."""
        times, last = self._done.get(key, (0, now))
        pause = min(LONGEST, FIRST * 2 ** min(times - 1, 30)) if times else 0
        return max(0.0, last + pause - now)

    def note(self, key: Key, now: float) -> None:
        """It was done for `key`."""
        times, last = self._done.get(key, (0, now))
        self._done[key] = (1 if now - last > FORGOTTEN else times + 1, now)

    def forget(self, key: Key) -> None:
        """`key` is gone."""
        self._done.pop(key, None)
