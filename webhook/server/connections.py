"""How many connections a port has at once: every pod of the cluster may reach it.

Beyond the maximum the connection that has been idle for longest gives way to a new one.
"""

import resource
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from webhook.server.limits import MAX_CONNECTIONS
from webhook.server.refusal_log import RefusalLog

# Descriptors for everything else: the operations port, the calls to the API server, files.
RESERVED: Final = 256
LEAST: Final = 32
# Why a connection is turned away or cut off: a metric label.
REASONS: Final = ("full", "handshake", "silent", "head", "ahead", "unread", "descriptors")


class Connection(Protocol):
    """One that was accepted."""

    peer: str
    used: float
    """When it was opened, or had its last reply."""
    busy: bool
    """A request has no reply yet."""

    def cut(self, reason: str) -> None:
        """End it at once, and count why."""
        ...


@dataclass(slots=True)
class Connections:
    """The connections of one port. `refused` gets the reason for each that is turned away or cut off."""

    maximum: int
    refused: Callable[[str], object]
    log: RefusalLog
    _open: set[Connection] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: Connection) -> bool:
        """Count another connection; False when it must be turned away, since all others are busy."""
        if len(self._open) >= self.maximum:
            idle = [each for each in self._open if not each.busy]
            if not idle:
                self.turned_away("full", connection.peer)
                return False
            min(idle, key=lambda each: each.used).cut("full")
        self._open.add(connection)
        return True

    def forget(self, connection: Connection) -> None:
        """It has ended."""
        self._open.discard(connection)

    def turned_away(self, reason: str, peer: str) -> None:
        """Count and log one that was turned away or cut off."""
        self.refused(reason)
        self.log.tell("connection refused", reason=reason, peer=peer)


def most_connections() -> int:
    """As many as the descriptors of this process allow, and no more than `MOST`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else max(LEAST, min(MAX_CONNECTIONS, soft - RESERVED))


def raise_limit() -> None:
    """Have as many descriptors as this process may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
