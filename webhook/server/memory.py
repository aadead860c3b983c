"""What bodies, of requests and of their replies until they are sent, may take of the process's memory, all together;
and what is not needed any more goes back.

A small body takes nothing of it: there are never more of these than connections.
"""

import asyncio
import ctypes
from collections import Counter
from typing import Final, NoReturn

# Bytes.
SMALL: Final = 64 * 2**10
IN_ALL: Final = 96 * 2**20
OF_ONE_PEER: Final = IN_ALL // 2
# Between two times that unused memory is given back.
SECONDS: Final = 10.0


class NoRoom(Exception):
    """The bodies at hand take all that bodies may take."""


class Claim:
    """What one request takes, until it is given back as a whole."""

    def __init__(self, budget: "MemoryBudget", peer: str) -> None:
        self._budget = budget
        self._peer = peer
        self._size = 0

    def hold(self, size: int) -> None:
        """It has `size` bytes by now; NoRoom when that is too much beside the others."""
        if size <= SMALL:
            return
        more = size - self._size
        held = self._budget.held
        if held.total() + more > self._budget.in_all or held[self._peer] + more > self._budget.of_one_peer:
            raise NoRoom
        held[self._peer] += more
        self._size = size

    def give_back(self) -> None:
        """It is not held any more."""
        self._budget.held[self._peer] -= self._size
        if not self._budget.held[self._peer]:
            del self._budget.held[self._peer]


class MemoryBudget:
    """The bytes of bodies that are held at a moment, by the address of the peer that sent them."""

    held: Counter[str]

    def __init__(self, in_all: int = IN_ALL, of_one_peer: int = OF_ONE_PEER) -> None:
        self.in_all = in_all
        self.of_one_peer = of_one_peer
        self.held = Counter()

    def claim(self, peer: str) -> Claim:
        """A claim for a request of `peer`, which has to be given back."""
        return Claim(self, peer)


async def kept_small() -> NoReturn:
    """Have unused memory given back again and again, until cancelled.

    By itself glibc keeps it for good where a single piece in use lies above: after thousands of TLS connections, or
    some large bodies that came slowly, that is more than the service needs. Nobody tells when they have been freed,
    and one time takes a millisecond or two.
    """
    while True:
        await asyncio.sleep(SECONDS)
        give_back()


def give_back() -> None:
    """Have the C library give unused memory back to the system, where it can do that.

    https://man7.org/linux/man-pages/man3/malloc_trim.3.html
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
