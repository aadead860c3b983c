"""Whose requests are answered when: each address has its share of the event loop, which answers everybody.

A request is answered as soon as all of it is there. An address that has taken its share by that waits until the loop
has gone round once: what others have sent meanwhile is read, and answered. Of several that wait, one has its turn each
time. Else hundreds of connections of one address, with a costly request on each, would come before whatever others
send next. An address alone waits for nobody, and one round of the loop costs nothing beside its share.

A reply for which something has to be waited takes its share in steps, and each of them may have to wait for its turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from time import monotonic
from types import coroutine
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
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
        """Each answers a request, or lets one go on."""


class Turns:
    """The addresses that have connections."""

    def __init__(self) -> None:
        self._addresses: WeakValueDictionary[str, Address] = WeakValueDictionary()
        self._over: deque[Address] = deque()
        """While there are any, `_next` is due."""

    def of(self, peer: str) -> Address:
        """The address of `peer`, the same as long as anybody has it."""
        return self._addresses.setdefault(peer, Address())

    def take(self, address: Address, answer: Callable[[], object]) -> None:
        """Call `answer` now, or when it is the turn of its address."""
        if address.over:
            address.waiting.append(answer)
        else:
            self._call(address, answer)

    async def paced(self, address: Address, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns; none of its steps comes before it is the turn of its address."""
        return await self._steps(address, work)

    @coroutine
    def _steps(self, address: Address, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """`work`, as the event loop would drive it."""
        thrown: BaseException | None = None
        while True:
            try:
                if address.over:
                    yield from self._turn(address)
            except asyncio.CancelledError as cancelled:
                thrown = cancelled
            began = monotonic()
            try:
                awaited = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as returned:
                result: T = returned.value
                return result
            finally:
                self._spend(address, monotonic() - began)
            thrown = None
            try:
                yield awaited
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it is for `work`
                thrown = error

    def _turn(self, address: Address) -> "asyncio.Future[None]":
        """Done when it is the turn of the address."""
        turn = asyncio.get_running_loop().create_future()
        address.waiting.append(partial(self._let_go_on, address, turn))
        return turn

    def _let_go_on(self, address: Address, turn: "asyncio.Future[None]") -> None:
        if not turn.done():  # else it was cancelled
            turn.set_result(None)
            self._spend(address, SHARE)  # the step comes in the loop's next round: what it takes is not known before

    def _call(self, address: Address, answer: Callable[[], object]) -> None:
        """Call `answer`. What it raises is told, and keeps nobody else from an answer."""
        began = monotonic()
        try:
            answer()
        except Exception as error:  # noqa: BLE001 - those that wait must have their turn
            context = {"message": "a request was not answered", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        finally:
            self._spend(address, monotonic() - began)

    def _spend(self, address: Address, seconds: float) -> None:
        """Take so much of the share of an address; one that has had all of it gets in line."""
        address.spent += seconds
        if address.spent >= SHARE and not address.over:
            address.over = True
            if not self._over:
                asyncio.get_running_loop().call_soon(self._next)
            self._over.append(address)

    def _next(self) -> None:
        address = self._over[0]
        address.spent, address.over = 0.0, False
        try:
            while address.waiting and not address.over:
                self._call(address, address.waiting.popleft())
        finally:
            if address.waiting:  # also where something was raised that is no Exception
                self._spend(address, SHARE)
            self._over.popleft()
            if self._over:
                asyncio.get_running_loop().call_soon(self._next)
