"""Demands that fit, resources that are short, and the number of workers that fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import PROPERTY
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.quantity import Quantity
from webhook.api.quota_charges import Charge
from webhook.api.quota_scopes import PodTraits, Scope
from webhook.cluster.resources.resource_quotas import ResourceQuota
from webhook.predict.quota.fit import Demand, RolePods, charged, most_workers, shortages

POD = PodTraits()


def quota(hard: dict[str, int], used: dict[str, int] | None = None, *scopes: Scope) -> ResourceQuota:
    given = dict.fromkeys(hard, 0) if used is None else used
    return ResourceQuota("ns", "q", _amounts(hard), _amounts(given), scopes)


def _amounts(numbers: dict[str, int]) -> dict[str, Quantity]:
    return {name: Quantity(number) for name, number in numbers.items()}


def demand(workers: int, *, made: int = 0, launcher: int = 1, **each: int) -> Demand:
    return Demand(
        (
            RolePods(LAUNCHER, 1, (Charge(POD, {"cpu": launcher}),)),
            RolePods(WORKER, workers, (Charge(POD, each or {"cpu": 2}),), made),
        )
    )


def test_only_resources_in_the_quota_are_charged() -> None:
    loads = demand(3, cpu=2, pods=1, memory=0).whole
    assert charged(quota({"cpu": 9, "memory": 9}), loads) == {"cpu": 7}
    assert charged(quota({"cpu": 9}, None, Scope("Terminating")), loads) == {}


@pytest.mark.parametrize(
    ("hard", "used", "promised", "expected"),
    [
        (9, 0, 0, None),
        (9, 2, 0, None),
        (9, 1, 1, None),
        (9, 3, 0, "busy"),
        (9, 1, 2, "busy"),
        (6, 0, 0, "never"),
        (9, 12, 0, "busy"),
    ],
)
def test_shortage(hard: int, used: int, promised: int, expected: str | None) -> None:
    promises = {"q": {"cpu": Quantity(promised)}, "another": {"cpu": Quantity(9)}}
    short = shortages([quota({"cpu": hard}, {"cpu": used})], demand(3), promises)
    assert [("never" if each.impossible else "busy") for each in short] == ([expected] if expected else [])
    for each in short:
        assert (each.missing, each.whole, each.hard, each.taken) == (7, 7, hard, used + promised)
        assert each.available == max(hard - used - promised, 0)


def test_only_the_hard_limit_applies_if_the_use_is_unknown() -> None:
    assert shortages([quota({"cpu": 7}, {})], demand(3)) == []
    [short] = shortages([quota({"cpu": 6}, {})], demand(3))
    assert short.impossible


def test_resource_that_the_job_does_not_use_is_not_short() -> None:
    assert shortages([quota({"gpu": 1}, {"gpu": 5})], demand(3)) == []


def test_existing_pods_are_already_included_in_the_used_amount() -> None:
    busy = quota({"cpu": 9}, {"cpu": 8})
    assert shortages([busy], demand(3, made=3)) == []
    [short] = shortages([busy], demand(4, made=3))
    assert (short.missing, short.whole, short.impossible) == (3, 9, False)
    assert shortages([busy], demand(2, made=3)) == []


def test_update_is_short_only_of_resources_that_grow() -> None:
    full = quota({"cpu": 9, "pods": 99}, {"cpu": 9, "pods": 0})
    assert shortages([full], demand(3), before=demand(3)) == []
    assert shortages([full], demand(2), before=demand(3)) == []
    assert [each.resource for each in shortages([full], demand(4), before=demand(3))] == ["cpu"]


@PROPERTY
@given(
    st.integers(1, 40),
    st.integers(0, 40),
    st.dictionaries(st.sampled_from(["cpu", "gpu", "pods"]), st.integers(0, 5), min_size=1),
    st.dictionaries(st.sampled_from(["cpu", "gpu", "pods"]), st.tuples(st.integers(0, 90), st.integers(0, 90))),
)
def test_most_workers(workers: int, made: int, each: dict[str, int], limits: dict[str, tuple[int, int]]) -> None:
    hard = {name: most for name, (most, _) in limits.items()}
    of = [quota(hard, {name: used for name, (_, used) in limits.items()})]
    job = demand(workers, made=made, **each)

    def short(count: int) -> bool:
        return bool(shortages(of, job.with_workers(count)))

    fits = most_workers(job.workers, short)
    assert fits == max((count for count in range(1, workers) if not short(count)), default=0)
    assert job.with_workers(fits).workers == fits


def test_no_number_of_workers_fits_a_job_without_workers() -> None:
    job = Demand((RolePods(LAUNCHER, 1, (Charge(POD, {"cpu": 1}),)),))
    assert job.workers == 0
    assert most_workers(job.workers, lambda _: False) == 0
