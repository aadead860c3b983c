"""Reservations: the quota that admitted jobs will use, stored until every replica of the service sees the jobs.

The reservations for the jobs of a namespace are in a Lease in the namespace of the service. The service must not write
to other namespaces.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from webhook.api.quota_charges import Charge
from webhook.cluster.limits import MAX_LEDGER_BYTES, MAX_RESERVATION_BYTES
from webhook.cluster.resource import Metadata, WatchedPlace, Wire, namespaced


class ReservedPods(msgspec.Struct, frozen=True):
    """The pods of one role of a job."""

    role: str
    count: int
    charges: tuple[Charge, ...]
    """The quota that one pod and its claims use."""


class Reservation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The quota that all pods and other objects of an admitted job will use."""

    uid: str
    name: str
    pods: tuple[ReservedPods, ...] = ()
    objects: tuple[Charge, ...] = ()
    new: bool = False
    """The job was not stored when the reservation was made."""


LABEL = "training.openshift.io/reservations"
NAMESPACE = "training.openshift.io/for-namespace"
ENTRIES = "training.openshift.io/reserved"
"""The annotation that holds the reservations."""


class LedgerEntry(msgspec.Struct, frozen=True, gc=False):
    """A reservation and its end."""

    reservation: Reservation
    expires: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Reservations:
    """The Lease with the reservations of a namespace."""

    namespace: str
    name: str
    """The name of the Lease."""
    version: str
    """The resourceVersion of the Lease; empty if the Lease does not exist."""
    entries: Sequence[LedgerEntry]
    """In the order in which they were written."""


class _Metadata(Metadata):
    annotations: dict[str, str] | None = None
    resource_version: str = ""


class Lease(Wire):
    """A Lease with reservations."""

    metadata: _Metadata


_Row = tuple[str, tuple[Charge, ...]]
"""(role of the pods, or "" for other objects; charges of one pod or object)."""


class _Job(msgspec.Struct, array_like=True, gc=False):
    uid: str
    name: str
    expires: float
    takes: list[tuple[int, int]]
    """(number of pods or objects, index of a row in the table)."""
    new: bool = False


class _Stored(msgspec.Struct):
    """The JSON in the annotation. Similar jobs share rows of the table, which keeps an entry at about 90 bytes."""

    table: list[_Row]
    jobs: list[_Job]


_stored = msgspec.json.Decoder(_Stored)


def encode(entries: Iterable[LedgerEntry]) -> tuple[str, list[str]]:
    """The value of the annotation, and the names of jobs whose entries are too large for the annotation."""
    table: list[bytes] = []
    jobs: list[bytes] = []
    left_out = []
    size = 0
    numbers: dict[bytes, int] = {}
    encoded: dict[int, bytes] = {}  # by id() of the charges, because similar jobs share the tuple of charges
    for entry in entries:
        reservation = entry.reservation
        counted = [*((pods.count, pods.role, pods.charges) for pods in reservation.pods), (1, "", reservation.objects)]
        rows = [(count, _row(role, charges, encoded)) for count, role, charges in counted if charges]
        new = {row: len(numbers) + at for at, row in enumerate({row: 0 for _, row in rows if row not in numbers})}
        takes = [(count, numbers.get(row, new.get(row, 0))) for count, row in rows]
        expires = round(entry.expires, 1)
        job = msgspec.json.encode(_Job(reservation.uid, reservation.name, expires, takes, reservation.new))
        adds = sum(len(row) + 1 for row in new) + len(job) + 1
        if adds > MAX_RESERVATION_BYTES or size + adds > MAX_LEDGER_BYTES:
            left_out.append(reservation.name)
            continue
        size += adds
        numbers |= new
        table += new
        jobs.append(job)
    text = b'{"table":[%b],"jobs":[%b]}' % (b",".join(table), b",".join(jobs))
    return text.decode(), left_out


def _row(role: str, charges: tuple[Charge, ...], encoded: dict[int, bytes]) -> bytes:
    text = encoded.get(id(charges))
    if text is None:
        text = encoded[id(charges)] = msgspec.json.encode(charges)
    return b"[%b,%b]" % (msgspec.json.encode(role), text)


def decode(text: str) -> tuple[LedgerEntry, ...]:
    """The entries in the value of an annotation; msgspec.DecodeError or LookupError if it is damaged."""
    stored = _stored.decode(text)
    return tuple(_entry(job, stored.table) for job in stored.jobs)


def _entry(job: _Job, table: list[_Row]) -> LedgerEntry:
    takes = [(count, *table[row]) for count, row in job.takes]
    pods = tuple(ReservedPods(role, count, charges) for count, role, charges in takes if role)
    objects = tuple(charge for _, role, charges in takes if not role for charge in charges)
    return LedgerEntry(Reservation(job.uid, job.name, pods, objects, job.new), job.expires)


def manifest(lease: Reservations, entries: Iterable[LedgerEntry]) -> tuple[dict[str, Any], list[str]]:
    """The JSON of the Lease with these entries, and the names of jobs whose entries are too large for the Lease."""
    text, left_out = encode(entries)
    metadata = {
        "name": lease.name,
        "resourceVersion": lease.version,
        "labels": {LABEL: "true"},
        "annotations": {NAMESPACE: lease.namespace, ENTRIES: text},
    }
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}, left_out


def record(lease: Lease) -> Reservations:
    """The record of a Lease. A damaged annotation counts as empty."""
    metadata, annotations = lease.metadata, lease.metadata.annotations or {}
    entries: Sequence[LedgerEntry] = ()
    with suppress(msgspec.DecodeError, LookupError):
        entries = decode(annotations[ENTRIES])
    return Reservations(annotations.get(NAMESPACE, ""), metadata.name, metadata.resource_version, entries)


RESERVATIONS = namespaced(
    "leases",
    "Lease",
    "coordination.k8s.io/v1",
    wire=Lease,
    record=record,
    label_selector=f"{LABEL}=true",
    place=WatchedPlace.OWN,
)
