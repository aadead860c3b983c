"""Whose requests are answered when: each address has its share of the event loop, which answers everybody.

A request is answered as soon as all of it is there. An address that has taken its share by that waits until the loop
has gone round once: what others have sent meanwhile is read, and answered. Of several that wait, one has its turn each
time. Else hundreds of connections of one address, with a costly request on each, would come before whatever others
send next. An address alone waits for nobody, and one round of the loop costs nothing beside its share.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final
from weakref import WeakValueDictionary

# Seconds: some hundred ordinary reviews, and less than the costliest one.
SHARE: Final = 0.02


class Address:
    """What the connections of one address have in common."""

    def __init__(self) -> None:
        self.spent = 0.0
        """Seconds that its requests have taken since its last turn."""
        self.over = False
        """It has had its share, and waits for another turn."""
        self.waiting: deque[Callable[[], object]] = deque()
        """Each answers a request."""


class Turns:
    """The addresses that have connections."""

    def __init__(self) -> None:
        self._addresses: WeakValueDictionary[str, Address] = WeakValueDictionary()
        self._over: deque[Address] = deque()

    def of(self, peer: str) -> Address:
        """The address of `peer`, the same as long as anybody has it."""
        return self._addresses.setdefault(peer, Address())

    def take(self, address: Address, answer: Callable[[], object]) -> None:
        """Call `answer` now, or when it is the turn of its address."""
        if address.over:
            address.waiting.append(answer)
            return
        if self._uses_up(address, answer):
            self._wait(address)

    def _uses_up(self, address: Address, answer: Callable[[], object]) -> bool:
        """Call `answer`; whether its address has had its share by then."""
        began = monotonic()
        answer()
        address.spent += monotonic() - began
        address.over = address.spent >= SHARE
        return address.over

    def _wait(self, address: Address) -> None:
        if not self._over:
            asyncio.get_running_loop().call_soon(self._next)
        self._over.append(address)

    def _next(self) -> None:
        address = self._over.popleft()
        address.spent, address.over = 0.0, False
        while address.waiting and not self._uses_up(address, address.waiting.popleft()):
            pass
        if self._over:
            asyncio.get_running_loop().call_soon(self._next)
        if address.over:
            self._wait(address)
