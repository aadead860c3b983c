"""Whether jobs certainly fit: never more than the quota itself admits, and one after the other."""

import pytest

from tests.support.quota_objects import quota
from webhook.api.mpijob import WORKER
from webhook.api.quantity import NANO
from webhook.api.quota_charges import Charge
from webhook.api.quota_scopes import PodTraits
from webhook.cluster.resources.reservations import Reservation, ReservedPods
from webhook.cluster.snapshot import Snapshot
from webhook.kit.context import Context
from webhook.predict.quota.quick_fit import Room

GPUS = "requests.nvidia.com/gpu"


def room(hard: dict[str, int], used: dict[str, int] | None) -> Room:
    return Room(Context(namespace="team-a", view=Snapshot([quota(hard, used)])))


def workers(count: int) -> Reservation:
    charge = Charge(PodTraits(), {GPUS: NANO})
    return Reservation(f"u-{count}", "job", (ReservedPods(WORKER, count, (charge,)),), new=True)


@pytest.mark.parametrize(
    ("used", "count", "holds"),
    [({GPUS: 0}, 8, True), ({GPUS: 0}, 9, False), ({GPUS: 6}, 2, True), ({GPUS: 6}, 3, False)],
)
def test_it_holds_what_is_left(used: dict[str, int], count: int, holds: bool) -> None:
    assert room({GPUS: 8}, used).holds(workers(count)) is holds


def test_what_is_promised_counts_from_then_on() -> None:
    found = room({GPUS: 8}, {GPUS: 0})
    found.promise(workers(5))
    assert found.holds(workers(3))
    assert not found.holds(workers(4))


def test_nothing_is_certain_where_it_is_unknown_what_is_used() -> None:
    assert not room({GPUS: 8}, {}).holds(workers(1))


def test_what_no_quota_counts_fits() -> None:
    assert room({"requests.cpu": 1}, {"requests.cpu": 1}).holds(workers(100))
