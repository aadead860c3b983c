"""Jobs that are admitted, and what all of their pods take: as they are stored, and as they are reserved."""

import msgspec

from webhook.quota.charges import Charge, PodShape


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


class PodsRecord(msgspec.Struct, frozen=True, gc=False):
    """The pods of a role of a stored job."""

    role: str
    count: int
    shape: PodShape


class MPIJobRecord(msgspec.Struct, frozen=True, gc=False):
    """An MPIJob that exists. One that is `over` has ended or is being deleted: it takes nothing more, so no `pods`.

    It has `ended` if the operator here has seen it to its end.
    """

    namespace: str
    name: str
    uid: str
    over: bool = False
    suspended: bool = False
    queue: str = ""
    pods: tuple[PodsRecord, ...] = ()
    ended: bool = False
