"""How far long work is: a line on the terminal that goes away again, and nothing where there is no terminal."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")
EVERY: Final = 0.1
"""Seconds between two looks of the line."""
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """The line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` counts seconds."""
        self._clock = clock
        self._next = 0.0
        self._shown = False

    def show(self, text: str) -> None:
        """Write the line anew, unless that was just done."""
        now = self._clock()
        if sys.stderr.isatty() and now >= self._next:
            self._next = now + EVERY
            self._shown = True
            print(f"{_CLEAR}{text}", end="", file=sys.stderr, flush=True)  # noqa: T201 - click.echo drops the codes

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._shown = False
            print(_CLEAR, end="", file=sys.stderr, flush=True)  # noqa: T201


def counted_off(items: Iterable[T], noun: str, total: int) -> Iterator[T]:
    """The items, with a line that counts them off."""
    progress = Progress()
    try:
        for number, item in enumerate(items, start=1):
            progress.show(f"{number:,} of {total:,} {noun}")
            yield item
    finally:
        progress.clear()
