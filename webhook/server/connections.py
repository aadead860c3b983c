"""How many connections a port has at once, in all and of one peer: every pod of the cluster may reach it.

When there are too many, one that has asked for nothing gives way: a peer that only holds connections open keeps out
nobody but itself.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from aiohttp import web

# Seconds. A handshake takes some milliseconds, and so does the first request after it.
HANDSHAKE_SECONDS: Final = 5.0
FIRST_REQUEST_SECONDS: Final = 10.0
MOST: Final = 1024
# Descriptors for everything else: the operations port, the calls to the API server, files.
RESERVED: Final = 256
LEAST: Final = 32
TELL_SECONDS: Final = 10.0
# Why a connection is turned away or cut off: a metric label.
REASONS: Final = ("full", "peer", "handshake", "silent", "descriptors")

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(eq=False, slots=True)
class Connection:
    """One that was accepted."""

    peer: str
    since: float
    """When it was accepted, or has last had an answer."""
    abort: Callable[[], object]
    """Cuts it off."""
    protocol: Any = None
    """What speaks HTTP on it."""
    is_open: bool = False
    """Its handshake is over."""
    requests: int = 0
    """How many it has sent."""
    at_work: int = 0
    """How many of them have no answer yet."""

    def begins(self) -> None:
        """Another request is at work."""
        self.requests += 1
        self.at_work += 1

    def ends(self, now: float) -> None:
        """It has its answer, or never gets it."""
        self.at_work -= 1
        self.since = now

    @property
    def closed(self) -> bool:
        """Whether it has ended by itself."""
        return self.is_open and self.protocol.transport is None


@dataclass(slots=True)
class Connections:
    """The connections of one port. `refused` gets the reason for each that is turned away or cut off."""

    in_all: int
    of_one_peer: int
    refused: Callable[[str], object]
    log: Any
    clock: Callable[[], float] = monotonic
    _open: dict[Connection, None] = field(default_factory=dict)
    _by_peer: Counter[str] = field(default_factory=Counter)
    _by_protocol: dict[Any, Connection] = field(default_factory=dict)
    _untold: Counter[tuple[str, str]] = field(default_factory=Counter)
    _told: float = float("-inf")

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, peer: str, abort: Callable[[], object]) -> Connection | None:
        """Count another connection of `peer`; None when it has to be turned away."""
        if len(self._open) >= self.in_all or self._by_peer[peer] >= self.of_one_peer:
            self._forget_closed()
        if self._by_peer[peer] >= self.of_one_peer and not self._make_room(peer, "peer", idle=False):
            return None
        if len(self._open) >= self.in_all:
            heaviest = max(self._by_peer, key=lambda each: self._by_peer[each])
            if not self._make_room(heaviest, "full", idle=True):
                return None
        made = Connection(peer, self.clock(), abort)
        self._open[made] = None
        self._by_peer[peer] += 1
        return made

    def speaks(self, connection: Connection, protocol: Any) -> None:
        """`protocol` speaks HTTP on it, from the end of its handshake on."""
        connection.protocol = protocol
        self._by_protocol[protocol] = connection

    def of(self, protocol: Any) -> Connection | None:
        """The connection on which `protocol` speaks; None for one that was cut off."""
        return self._by_protocol.get(protocol)

    def forget(self, connection: Connection) -> None:
        """It has ended."""
        if connection in self._open:
            del self._open[connection]
            self._by_protocol.pop(connection.protocol, None)
            self._by_peer[connection.peer] -= 1
            if not self._by_peer[connection.peer]:
                del self._by_peer[connection.peer]

    def turned_away(self, reason: str, peer: str) -> None:
        """Count one that was turned away or cut off; the log hears of many in one line."""
        self.refused(reason)
        self._untold[reason, peer] += 1
        if self.clock() - self._told >= TELL_SECONDS:
            self._told = self.clock()
            for (why, whose), count in self._untold.most_common(10):
                self.log.warning("connections refused", reason=why, peer=whose, count=count)
            self._untold.clear()

    def noting(self, handle: Handler) -> Handler:
        """`handle`, with each request noted: a connection that sends some is not silent."""

        async def noted(request: web.BaseRequest) -> web.StreamResponse:
            connection = self.of(request.protocol)
            if connection is None:
                return await handle(request)
            connection.begins()
            try:
                return await handle(request)
            finally:
                connection.ends(self.clock())

        return noted

    async def run(self, every: float = 1.0) -> None:
        """Cut off whoever has sent no request in time, again and again, until cancelled."""
        while True:
            await asyncio.sleep(every)
            self.sweep()

    def sweep(self) -> None:
        """Cut off whoever has sent no request in time."""
        self._forget_closed()
        late = self.clock() - FIRST_REQUEST_SECONDS
        for connection in [each for each in self._open if not each.requests and each.since <= late]:
            self._cut(connection, "silent")

    def _make_room(self, peer: str, reason: str, *, idle: bool) -> bool:
        """Cut off one of `peer`, silent or else `idle`; False when there is none, and the new one has to go."""
        of_peer = [each for each in self._open if each.peer == peer and not each.at_work]
        victims = [each for each in of_peer if not each.requests] or (of_peer if idle else [])
        if not victims:
            self.turned_away(reason, peer)
            return False
        self._cut(min(victims, key=lambda each: each.since), reason)
        return True

    def _cut(self, connection: Connection, reason: str) -> None:
        self.turned_away(reason, connection.peer)
        self.forget(connection)
        connection.abort()

    def _forget_closed(self) -> None:
        for connection in [each for each in self._open if each.closed]:
            self.forget(connection)


def most_connections() -> int:
    """As many as the descriptors of this process allow, and no more than `MOST`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(LEAST, min(MOST, soft - RESERVED))


def raise_limit() -> None:
    """Have as many descriptors as this process may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
