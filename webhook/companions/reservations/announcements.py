"""What this replica tells the others that it reserves, and what it hears of them.

Each replica writes into an annotation of its own in the namespace's Lease, and the answer to that write says what all
others have announced until then. So of two replicas that hand out the last GPU at the same moment one hears of the
other, and neither ever has to begin again.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

from webhook.client.calls import ApiError, ClusterError
from webhook.client.live_view import LiveView
from webhook.cluster.resources import reservations
from webhook.cluster.resources.reservations import MOST_BYTES, RESERVATIONS, LedgerEntry, Reservations, merged
from webhook.cluster.view import Answer
from webhook.companions.reservations.leases import LedgerApi, lease_name
from webhook.companions.reservations.sight import Sight

# Of the API server, for an object whose annotations are too long.
INVALID: Final = 422

Entries = dict[str, LedgerEntry]
"""By the uid of the job: one that is sent again gets another uid, and either may be the one that is stored."""


@dataclass(frozen=True, slots=True)
class Announced:
    """The reservations of a namespace at one moment, without those of jobs that everybody sees."""

    own: Entries
    """What this replica has reserved before."""
    others: Entries
    """What the other replicas have announced; some of it may be withdrawn."""
    left_out: list[str]
    """Jobs for which there was no room."""


class Announcements:
    """The annotations of this replica, one for each namespace; the Leases are in `namespace`."""

    def __init__(self, api: LedgerApi, view: LiveView, sight: Sight, *, namespace: str, log: Any) -> None:
        self._api = api
        self._view = view
        self._namespace = namespace
        self._sight = sight
        self._log = log
        self._names: dict[str, list[str]] = {}  # namespace -> the names of the annotations that may be this replica's
        self._own: dict[str, Entries] = {}
        self._too_many: set[str] = set()  # namespaces in which more is announced than reserved
        self._taken: dict[str, int] = {}  # bytes of each Lease that others take

    def known(self, namespace: str) -> list[LedgerEntry]:
        """What is reserved as far as this replica has heard."""
        lease = self._view.get(RESERVATIONS, (self._namespace, lease_name(namespace)))
        others = [] if isinstance(lease, Answer) else self._of_others(namespace, lease)
        return self._sight.kept((*others, *self._own.get(namespace, {}).values()))

    async def announce(self, namespace: str, wanted: Entries) -> Announced:
        """Announce `wanted` besides what is reserved; ClusterError when that fails. `reserve` has to follow."""
        own = self._kept(self._own.get(namespace, {}).values())
        left_out: list[str] = []
        if wanted or namespace in self._too_many:
            self._too_many.add(namespace)
            lease, left_out = await self._write(namespace, by_job((*own.values(), *wanted.values())))
        else:
            lease = await self._api.reservations(namespace)
        return Announced(own, self._kept(self._of_others(namespace, lease)), left_out)

    def reserve(self, namespace: str, announced: Announced, wanted: Entries, admitted: Entries) -> None:
        """Of what was `wanted` the jobs in `admitted` are; the others are to be withdrawn."""
        self._own[namespace] = by_job((*announced.own.values(), *admitted.values()))
        if admitted.keys() >= wanted.keys():
            self._too_many.discard(namespace)

    def to_withdraw(self, namespace: str) -> bool:
        """Whether more is announced than reserved."""
        return namespace in self._too_many

    async def withdraw(self, namespace: str) -> None:
        """Announce what is reserved, and nothing besides."""
        try:
            await self.announce(namespace, {})
        except Exception as error:  # noqa: BLE001 - what is left expires by itself
            self._log.warning("reservations are not withdrawn", namespace=namespace, reason=str(error)[:256])
        self._too_many.discard(namespace)

    async def sweep(self, *, busy: Container[str]) -> None:
        """Remove what is over, but nothing in namespaces that are `busy`; Leases in which nothing else is go."""
        for namespace in [each for each in self._own if each not in busy]:
            self._own[namespace] = self._kept(self._own[namespace].values())
            if not self._own[namespace]:
                del self._own[namespace]
                self._taken.pop(namespace, None)
                self._names.pop(namespace, None)
        known = self._view.all(RESERVATIONS)
        for lease in () if isinstance(known, Answer) else list(known.values()):
            over = [replica for replica, part in lease.parts.items() if not self._sight.kept(part.entries)]
            if lease.namespace in busy or (lease.parts and not over):
                continue
            try:
                if len(over) == len(lease.parts):
                    await self._api.delete(lease)
                else:
                    await self._api.drop(lease, over)
            except ClusterError as error:
                self._log.warning("reservations are left behind", namespace=lease.namespace, reason=str(error))

    async def _write(self, namespace: str, entries: Entries) -> tuple[Reservations, list[str]]:
        text, left_out = self._text(namespace, entries)
        try:
            lease = await self._send(namespace, text)
        except ApiError as error:
            if error.status != INVALID:
                raise
            self._measure(namespace, await self._api.reservations(namespace))  # the others may take more by now
            text, left_out = self._text(namespace, entries)
            lease = await self._send(namespace, text)
        self._measure(namespace, lease)
        if left_out:
            self._log.warning("reservations are full", left_out=len(left_out))
        return lease, left_out

    async def _send(self, namespace: str, text: str) -> Reservations:
        """A write of which nobody heard the end may still be done, and must not undo the next one.

        So the next one has another name, and removes what is under those before.
        """
        names = self._names.setdefault(namespace, [token_hex(6)])
        *over, name = names
        names.append(token_hex(6))
        lease = await self._api.announce(namespace, name, text, over=over)
        names[:] = [name]
        return lease

    def _text(self, namespace: str, entries: Entries) -> tuple[str, list[str]]:
        """What is written, and which jobs there is no room for: what these take is not reserved."""
        room = MOST_BYTES - self._taken.get(namespace, 0)
        text, left_out = reservations.encode(entries.values(), room)
        if left_out:  # those that are seen make room
            text, left_out = reservations.encode(self._sight.counting(entries.values()), room)
        return text, left_out

    def _measure(self, namespace: str, lease: Reservations) -> None:
        own = self._names.get(namespace, ())
        self._taken[namespace] = sum(part.size for replica, part in lease.parts.items() if replica not in own)

    def _of_others(self, namespace: str, lease: Reservations) -> Iterable[LedgerEntry]:
        own = self._names.get(namespace, ())
        return (entry for replica, part in lease.parts.items() if replica not in own for entry in part.entries)

    def _kept(self, entries: Iterable[LedgerEntry]) -> Entries:
        return by_job(self._sight.kept(entries))


def by_job(entries: Iterable[LedgerEntry]) -> Entries:
    """The entries, with one for each job."""
    found: Entries = {}
    for entry in entries:
        add(found, entry)
    return found


def add(entries: Entries, entry: LedgerEntry) -> None:
    """Count `entry` as well: of an update and what was before either may be what is stored."""
    uid = entry.reservation.uid
    if (before := entries.get(uid)) is not None:
        reservation = merged(before.reservation, entry.reservation)
        entry = LedgerEntry(reservation, max(before.expires, entry.expires))
    entries[uid] = entry
