"""Reservations: what admitted jobs will take of quotas, until every replica of the service sees the jobs themselves.

One Lease for each namespace that has any, in the service's own namespace: the service needs no right to write into
anybody else's, and a Lease can hold nothing that is a policy.
"""

from dataclasses import dataclass

import msgspec

from webhook.api.quota_charges import Charge
from webhook.cluster.resource import Metadata, WatchedPlace, Wire, namespaced


class ReservedPods(msgspec.Struct, frozen=True):
    """The pods of a role: how many, and what one takes with its claims."""

    role: str
    count: int
    charges: tuple[Charge, ...]


class Reservation(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an admitted job takes: all of its pods, whether they exist or not, and the objects made for it."""

    uid: str
    name: str
    pods: tuple[ReservedPods, ...] = ()
    objects: tuple[Charge, ...] = ()


LABEL = "training.openshift.io/reservations"
ANNOTATION = "training.openshift.io/reservations"
NAMESPACE = "training.openshift.io/for-namespace"


class LedgerEntry(msgspec.Struct, frozen=True, gc=False):
    """A reservation and when it ends, in seconds since 1970."""

    reservation: Reservation
    expires: float


@dataclass(frozen=True, slots=True)
class Reservations:
    """What is reserved in a namespace."""

    namespace: str
    name: str
    """Of the Lease that holds the entries."""
    version: str
    """The resourceVersion of that Lease."""
    entries: tuple[LedgerEntry, ...]


class _Metadata(Metadata):
    annotations: dict[str, str] | None = None
    resource_version: str = ""


class Lease(Wire):
    """A Lease that holds reservations."""

    metadata: _Metadata


_entries = msgspec.json.Decoder(tuple[LedgerEntry, ...])


def record(lease: Lease) -> Reservations:
    """What a Lease holds; msgspec.DecodeError for one that somebody else has written."""
    annotations = lease.metadata.annotations or {}
    return Reservations(
        annotations.get(NAMESPACE, ""),
        lease.metadata.name,
        lease.metadata.resource_version,
        _entries.decode(annotations.get(ANNOTATION, "[]")),
    )


RESERVATIONS = namespaced(
    "leases",
    "Lease",
    "coordination.k8s.io/v1",
    wire=Lease,
    record=record,
    label_selector=f"{LABEL}=true",
    place=WatchedPlace.OWN,
)
