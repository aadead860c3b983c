"""What this replica tells the others that it reserves, and what it hears of them.

Each replica writes into an annotation of its own in the namespace's Lease, and the answer to that write says what all
others have written until then. So of two replicas that hand out the last GPU at the same moment one hears of the
other, and neither ever has to begin again.
"""

from collections.abc import Container, Hashable, Iterable
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Final

import msgspec

from webhook.client.calls import ApiError, ClusterError
from webhook.client.live_view import LiveView
from webhook.cluster.resources import reservations
from webhook.cluster.resources.reservations import MOST_BYTES, RESERVATIONS, LedgerEntry, Reservations
from webhook.cluster.view import Answer
from webhook.companions.reservations.leases import LedgerApi
from webhook.companions.reservations.sight import Sight

# Of the API server, for an object whose annotations are too long.
INVALID: Final = 422


@dataclass(frozen=True, slots=True)
class Announced:
    """The reservations of a namespace at the moment of a write, without those of jobs that everybody sees."""

    entries: list[LedgerEntry]
    """What this replica has reserved before, and all that the others have written."""
    left_out: list[str]
    """Jobs for which there was no room."""
    lease: str
    """The uid of the Lease: what was written into one that is removed by hand nobody hears any more."""


@dataclass(slots=True)
class _Namespace:
    """What this replica knows of the reservations in a namespace."""

    own: dict[Hashable, LedgerEntry] = field(default_factory=dict)
    """What it has reserved."""
    unwritten: bool = False
    """Whether the Lease says something else."""
    names: list[str] = field(default_factory=lambda: [token_hex(6)])
    """Of the annotations that may be its own."""
    taken: int = 0
    """Bytes of the Lease that others take."""
    heard: Reservations | None = None
    """The Lease as it was last."""
    lost: list[LedgerEntry] = field(default_factory=list)
    """What was in Leases that somebody else has removed."""

    def hear(self, lease: Reservations) -> None:
        """The API server says that this is the Lease now."""
        if self.heard is not None and self.heard.uid != lease.uid:
            self.remove(self.heard)
        self.heard = lease if lease.uid else None
        self.taken = sum(part.size for replica, part in lease.parts.items() if replica not in self.names)

    def remove(self, lease: Reservations) -> None:
        """What was in a Lease counts on where somebody else removes it; no replica does while something counts."""
        if self.heard is not None and self.heard.uid == lease.uid:
            self.lost += self.of_others(self.heard)
            self.heard = None
            self.unwritten = bool(self.own)

    def of_others(self, lease: Reservations) -> Iterable[LedgerEntry]:
        """What the Lease has of other replicas."""
        return (entry for replica, part in lease.parts.items() if replica not in self.names for entry in part.entries)


class Announcements:
    """The annotations of this replica, one for each namespace."""

    def __init__(self, api: LedgerApi, view: LiveView, sight: Sight, *, log: Any) -> None:
        self._api = api
        self._view = view
        self._sight = sight
        self._log = log
        self._namespaces: dict[str, _Namespace] = {}
        view.on_change(RESERVATIONS, self._lease_changed)

    async def announce(self, namespace: str, unjudged: list[LedgerEntry], *, at: float) -> Announced:
        """Write what is reserved, and `unjudged` besides; ClusterError when that fails. It is `at` now."""
        known = self._namespaces.setdefault(namespace, _Namespace())
        known.own = self._kept(known.own, at)
        own = [*known.own.values()]
        left_out: list[str] = []
        if unjudged or known.unwritten:
            known.unwritten = False  # what is reserved or released from now on
            lease, left_out = await self._write(namespace, known, [*own, *unjudged])
            known.unwritten |= bool(unjudged)
        else:
            lease = await self._api.reservations(namespace)
        known.hear(lease)
        known.lost = self._sight.kept(known.lost, at=at)
        others = self._sight.kept(known.of_others(lease), at=at)
        return Announced([*others, *known.lost, *own], left_out, lease.uid)

    def reserve(self, namespace: str, entry: LedgerEntry) -> None:
        """Reserve with the next write."""
        known = self._namespaces[namespace]
        known.own[_what(entry)] = entry
        known.unwritten = True

    def release(self, namespace: str, entry: LedgerEntry) -> None:
        """Reserve it no more, from the next write on."""
        known = self._namespaces[namespace]
        if known.own.get(_what(entry)) is entry:
            del known.own[_what(entry)]
            known.unwritten = True

    def unwritten(self, namespace: str) -> bool:
        """Whether the Lease says something else than what is reserved."""
        return namespace in self._namespaces and self._namespaces[namespace].unwritten

    def all_unwritten(self) -> list[str]:
        """The namespaces with such a Lease."""
        return [namespace for namespace, known in self._namespaces.items() if known.unwritten]

    def give_up(self, namespace: str) -> None:
        """Write no more because of what was announced so far: it ends by itself."""
        if namespace in self._namespaces:
            self._namespaces[namespace].unwritten = False

    async def sweep(self, *, busy: Container[str], at: float) -> None:
        """Remove what is over, but nothing in namespaces that are `busy`; Leases in which nothing else is go."""
        for namespace, each in [*self._namespaces.items()]:
            each.own, each.lost = self._kept(each.own, at), self._sight.kept(each.lost, at=at)
            heard = self._sight.kept(each.heard.entries, at=at) if each.heard is not None else ()
            if namespace not in busy and not (each.own or each.lost or heard):
                del self._namespaces[namespace]
        leases = self._view.all(RESERVATIONS)
        for lease in () if isinstance(leases, Answer) else list(leases.values()):
            over = [replica for replica, part in lease.parts.items() if not self._sight.kept(part.entries, at=at)]
            if lease.namespace in busy or (lease.parts and not over):
                continue
            try:
                if len(over) == len(lease.parts):
                    await self._api.delete(lease)
                else:
                    await self._api.drop(lease, over)
            except ClusterError as error:
                self._log.warning("reservations are left behind", namespace=lease.namespace, reason=str(error))

    async def _write(
        self, namespace: str, known: _Namespace, entries: list[LedgerEntry]
    ) -> tuple[Reservations, list[str]]:
        text, left_out = self._text(known, entries)
        try:
            lease = await self._send(namespace, known, text)
        except ApiError as error:
            if error.status != INVALID:
                raise
            known.hear(await self._api.reservations(namespace))  # the others may take more by now
            text, left_out = self._text(known, entries)
            lease = await self._send(namespace, known, text)
        if left_out:
            self._log.warning("reservations are full", left_out=len(left_out))
        return lease, left_out

    async def _send(self, namespace: str, known: _Namespace, text: str) -> Reservations:
        """A write of which nobody heard the end may still be done, and must not undo the next one.

        So the next one has another name, and removes what is under those before.
        """
        *over, name = known.names
        known.names.append(token_hex(6))
        lease = await self._api.announce(namespace, name, text, over=over)
        known.names[:] = [name]
        return lease

    def _text(self, known: _Namespace, entries: list[LedgerEntry]) -> tuple[str, list[str]]:
        """What is written, and which jobs there is no room for: what these take is not reserved."""
        room = MOST_BYTES - known.taken
        text, left_out = reservations.encode(entries, room)
        if left_out:  # those that are seen make room
            text, left_out = reservations.encode(self._sight.counting(entries), room)
        return text, left_out

    def _kept(self, own: dict[Hashable, LedgerEntry], at: float) -> dict[Hashable, LedgerEntry]:
        return {_what(entry): entry for entry in self._sight.kept(own.values(), at=at)}

    def _lease_changed(self, _: Hashable, old: Reservations | None, new: Reservations | None) -> None:
        """The watch says so, which may be late: answers to writes come before."""
        if old is not None and (new is None or new.uid != old.uid) and old.namespace in self._namespaces:
            self._namespaces[old.namespace].remove(old)
        if new is not None:
            known = self._namespaces.setdefault(new.namespace, _Namespace())
            if known.heard is None or known.heard.uid == new.uid:
                known.hear(new)


def _what(entry: LedgerEntry) -> Hashable:
    """What is reserved for. Of two updates of a job either may be what is stored, of the same one twice only one."""
    reservation = entry.reservation
    return reservation.uid if reservation.new else (reservation.uid, msgspec.json.encode(reservation.pods))
