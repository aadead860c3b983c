"""The quick check whether jobs fit into the quotas. Its answer is yes only if the jobs certainly fit."""

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
def test_job_fits_into_what_is_left(used: dict[str, int], count: int, holds: bool) -> None:
    assert room({GPUS: 8}, used).holds(workers(count)) is holds


def test_promised_job_reduces_what_is_left() -> None:
    left = room({GPUS: 8}, {GPUS: 0})
    left.promise(workers(5))
    assert left.holds(workers(3))
    assert not left.holds(workers(4))


def test_job_is_not_certain_to_fit_if_the_usage_is_unknown() -> None:
    assert not room({GPUS: 8}, {}).holds(workers(1))


def test_resource_without_a_quota_always_fits() -> None:
    assert room({"requests.cpu": 1}, {"requests.cpu": 1}).holds(workers(100))
