"""What other jobs will still take: those that are stored, those that are only reserved, and those that are both."""

import msgspec
import pytest

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.pod_resources import PodResources
from webhook.quota.charges import Charge, PodShape
from webhook.quota.pending import MPIJobRecord, PodsRecord, Reservation, ReservedPods, promised
from webhook.quota.scopes import ClaimTraits, ObjectTraits, PodTraits

SHAPE = PodShape(PodResources())
POD = Charge(PodTraits(), {"cpu": 1})
CLAIM = Charge(ClaimTraits("fast"), {"persistentvolumeclaims": 1})
RESERVED = Charge(PodTraits(priority_class="high"), {"cpu": 2**80})
OBJECTS = Charge(ObjectTraits(), {"services": 1})


def stored(workers: int, *, uid: str = "u", suspended: bool = False) -> MPIJobRecord:
    pods = (PodsRecord(LAUNCHER, 1, SHAPE), PodsRecord(WORKER, workers, SHAPE))
    return MPIJobRecord("ns", f"job-{uid}", uid, suspended=suspended, pods=pods)


def reserved(workers: int, *, uid: str = "u") -> Reservation:
    pods = (ReservedPods(LAUNCHER, 1, (RESERVED,)), ReservedPods(WORKER, workers, (RESERVED,)))
    return Reservation(uid, f"job-{uid}", pods, (OBJECTS,))


@pytest.mark.parametrize(
    ("jobs", "reservations", "made", "expected"),
    [
        ([], [], {}, []),
        ([stored(3)], [], {}, [(1, POD), (1, CLAIM), (3, POD), (3, CLAIM)]),
        ([stored(3)], [], {LAUNCHER: 1, WORKER: 2}, [(1, POD), (1, CLAIM)]),
        ([stored(3)], [], {LAUNCHER: 1, WORKER: 3}, []),
        ([stored(3)], [], {LAUNCHER: 1, WORKER: 5}, []),
        ([stored(3, suspended=True)], [], {}, []),
        ([], [reserved(3)], {}, [(1, RESERVED), (3, RESERVED), (1, OBJECTS)]),
        ([], [reserved(3)], {WORKER: 1}, [(1, RESERVED), (2, RESERVED)]),
        # The larger number counts: the job as it is stored, or what was admitted since.
        ([stored(3)], [reserved(3)], {}, [(1, RESERVED), (3, RESERVED), (1, OBJECTS)]),
        ([stored(3)], [reserved(5)], {LAUNCHER: 1, WORKER: 3}, [(2, RESERVED)]),
        ([stored(5)], [reserved(3)], {LAUNCHER: 1, WORKER: 3}, [(2, POD), (2, CLAIM)]),
        ([stored(5)], [reserved(3)], {}, [(5, POD), (5, CLAIM), (1, RESERVED), (1, OBJECTS)]),
        ([stored(3, suspended=True)], [reserved(3)], {LAUNCHER: 1, WORKER: 2}, [(1, RESERVED)]),
        ([stored(1)], [reserved(2, uid="v")], {LAUNCHER: 1, WORKER: 1}, [(1, RESERVED)]),
    ],
)
def test_promised(
    jobs: list[MPIJobRecord],
    reservations: list[Reservation],
    made: dict[str, int],
    expected: list[tuple[int, Charge]],
) -> None:
    loads = promised(jobs, reservations, made=lambda role, uid, name: made.get(role, 0), charges=lambda _: (POD, CLAIM))
    assert [load for load in loads if load[0]] == expected


def test_each_job_is_looked_up_by_what_it_is() -> None:
    asked = []

    def made(role: str, uid: str, name: str) -> int:
        asked.append((role, uid, name))
        return 9

    assert promised([stored(1, uid="a")], [reserved(1, uid="b")], made=made, charges=lambda _: (POD,)) == []
    assert {*asked} == {(role, uid, f"job-{uid}") for role in (LAUNCHER, WORKER) for uid in "ab"}


def test_reservations_can_be_written_down() -> None:
    text = msgspec.json.encode(reserved(3))
    assert msgspec.json.decode(text, type=Reservation) == reserved(3)
