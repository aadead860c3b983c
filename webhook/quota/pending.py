"""What is promised already: jobs that are admitted, and whose pods do not all exist yet, will still take it.

A pod that exists is in the quota's `used`, so it is not counted here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from webhook.quota.charges import Charge, PodShape
from webhook.quota.fit import Load


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


@dataclass(frozen=True, slots=True)
class PodsRecord:
    """The pods of a role of a stored job."""

    role: str
    count: int
    shape: PodShape


@dataclass(frozen=True, slots=True)
class MPIJobRecord:
    """An MPIJob that exists. One that is `over` has ended or is being deleted: it takes nothing more, so no `pods`."""

    namespace: str
    name: str
    uid: str
    over: bool = False
    suspended: bool = False
    queue: str = ""
    pods: tuple[PodsRecord, ...] = ()


Made = Callable[[str, str, str], int]
"""How many pods exist of (role, uid, name) of a job."""


def promised(
    jobs: Iterable[MPIJobRecord],
    reservations: Iterable[Reservation],
    *,
    made: Made,
    charges: Callable[[PodShape], tuple[Charge, ...]],
) -> list[Load]:
    """What the jobs will still take.

    A job that is stored and reserved counts once, for each role with the larger number: either may be behind.
    `charges` is what a pod of a stored job takes. A suspended job takes nothing beyond what is reserved for it.
    Reservations of jobs that are over do not belong here.
    """
    reserved = {each.uid: each for each in reservations}
    loads: list[Load] = []
    for job in jobs:
        own = reserved.pop(job.uid, None)
        counts = {pods.role: pods.count for pods in own.pods} if own else {}
        if not job.suspended:
            for pods in job.pods:
                if pods.count > counts.get(pods.role, 0):
                    counts[pods.role] = 0
                    missing = pods.count - made(pods.role, job.uid, job.name)
                    if missing > 0:
                        loads += ((missing, charge) for charge in charges(pods.shape))
        if own:
            loads += _reserved(own, counts, made)
    for other in reserved.values():
        loads += _reserved(other, {pods.role: pods.count for pods in other.pods}, made)
    return loads


def _reserved(reservation: Reservation, counts: dict[str, int], made: Made) -> list[Load]:
    """What is still missing of a reservation; the operator makes the other objects before any worker."""
    loads: list[Load] = []
    exists = 0
    for pods in reservation.pods:
        there = made(pods.role, reservation.uid, reservation.name)
        exists += there
        missing = counts[pods.role] - there
        if missing > 0:
            loads += ((missing, charge) for charge in pods.charges)
    if not exists:
        loads += ((1, charge) for charge in reservation.objects)
    return loads
