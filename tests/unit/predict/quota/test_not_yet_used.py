"""The resources that stored and reserved jobs will still use, including jobs that are both stored and reserved."""

from collections import Counter
from collections.abc import Iterable
from copy import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import PROPERTY
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.pod_resources import PodResources
from webhook.api.quantity import Quantity
from webhook.api.quota_charges import Charge, PodShape
from webhook.api.quota_scopes import ClaimTraits, ObjectTraits, PodTraits
from webhook.cluster.contents import Group
from webhook.cluster.owned import Owned, Owner
from webhook.cluster.resources.mpijobs import MPIJobRecord, PodsRecord
from webhook.cluster.resources.reservations import Reservation, ReservedPods
from webhook.cluster.resources.resource_quotas import ResourceQuota
from webhook.predict.quota.fit import charged_at_most
from webhook.predict.quota.not_yet_used import Jobs, Made, Pods, pod_counts, promised, without_pods

SHAPE = PodShape(PodResources())
OTHER = PodShape(PodResources(overhead={"cpu": Quantity(1)}))
POD = Charge(PodTraits(), {"cpu": 1})
CLAIM = Charge(ClaimTraits("fast"), {"persistentvolumeclaims": 1})
RESERVED = Charge(PodTraits(priority_class="high"), {"cpu": 2**80})
OBJECTS = Charge(ObjectTraits(), {"services": 1})
NAMES = {id(POD): "POD", id(CLAIM): "CLAIM", id(RESERVED): "RESERVED", id(OBJECTS): "OBJECTS"}


def stored(workers: int, *, uid: str = "u", suspended: bool = False, shape: PodShape = SHAPE) -> MPIJobRecord:
    pods = (PodsRecord(LAUNCHER, 1, SHAPE), PodsRecord(WORKER, workers, shape))
    return MPIJobRecord("ns", f"job-{uid}", uid, suspended=suspended, pods=pods)


def reserved(workers: int, *, uid: str = "u") -> Reservation:
    pods = (ReservedPods(LAUNCHER, 1, (RESERVED,)), ReservedPods(WORKER, workers, (RESERVED,)))
    return Reservation(uid, f"job-{uid}", pods, (OBJECTS,))


def group(jobs: Iterable[MPIJobRecord]) -> Jobs:
    return Group({("ns", job.name): job for job in jobs})


def pod(index: int, role: str, *, uid: str = "u", name: str = "") -> Owned:
    job = name or f"job-{uid}"
    worker = Owner("kubeflow.org", "MPIJob", job, uid)
    launcher = Owner("batch", "Job", f"{job}-launcher", "x")
    return Owned("ns", f"{uid}-{role}-{index}", worker if role == WORKER else launcher)


def existing(made: dict[str, int], *, uid: str = "u") -> Pods:
    created = [pod(index, role, uid=uid) for role, count in made.items() for index in range(count)]
    return Group({("ns", owned.name): owned for owned in created})


def sums(jobs: Jobs, reservations: list[Reservation], pods: Pods, but: str = "") -> dict[str, int]:
    """The most that the jobs will still use, for each kind of charge."""
    loads_of_jobs = promised(
        pod_counts(pods).outstanding(jobs),
        reservations,
        job=lambda name: jobs.get(("ns", name)),
        without=but,
        charges=lambda _: (POD, CLAIM),
    )
    total: Counter[str] = Counter()
    for alternatives in loads_of_jobs:
        most: Counter[str] = Counter()
        for loads in alternatives:
            counts: Counter[str] = Counter()
            for count, charge in loads:
                counts[NAMES[id(charge)]] += count
            most |= counts
        total += most
    return dict(total)


def test_only_the_larger_of_two_reservations_with_one_name_is_promised() -> None:
    """A user submits a job again with a different size; the new job has a different uid."""
    again = Reservation("v", "job-u", (ReservedPods(WORKER, 5, (RESERVED,)),), (OBJECTS,))
    assert sums(group([]), [reserved(3), again], Group()) == {"RESERVED": 5, "OBJECTS": 1}
    assert sums(group([]), [reserved(8), again], Group()) == {"RESERVED": 9, "OBJECTS": 1}


@pytest.mark.parametrize("sizes", [(1, 4), (4, 1)])
@pytest.mark.parametrize("records", [[], [MPIJobRecord("ns", "job-u", "u", pods=(PodsRecord(WORKER, 3, SHAPE),))]])
def test_only_the_larger_of_two_updates_is_promised(sizes: tuple[int, int], records: list[MPIJobRecord]) -> None:
    """One of the updates may be stored, or none. Each update has three worker pods of one size."""
    updates = [
        Reservation("u", "job-u", (ReservedPods(WORKER, 3, (Charge(PodTraits(), {"cpu": size}),)),)) for size in sizes
    ]
    jobs = group(records)

    def taken(*reservations: Reservation) -> dict[str, int]:
        loads = promised(
            pod_counts(Group()).outstanding(jobs),
            reservations,
            job=lambda name: jobs.get(("ns", name)),
            without="",
            charges=lambda _: (POD,),
        )
        quota = ResourceQuota("ns", "q", {"cpu": Quantity(99)}, {})
        return {**charged_at_most(quota, loads)}

    assert taken(*updates) == {"cpu": 12}
    assert taken(updates[0]) == {"cpu": 3 * sizes[0]}
    smaller = Reservation("u", "job-u", (ReservedPods(WORKER, 3, ()),))
    assert taken(smaller) == ({"cpu": 3} if records else {})


@pytest.mark.parametrize(
    ("jobs", "reservations", "made", "expected"),
    [
        ([], [], {}, {}),
        ([stored(3)], [], {}, {"POD": 4, "CLAIM": 4}),
        ([stored(3)], [], {LAUNCHER: 1, WORKER: 2}, {"POD": 1, "CLAIM": 1}),
        ([stored(3)], [], {LAUNCHER: 1, WORKER: 3}, {}),
        ([stored(3, suspended=True)], [], {}, {}),
        ([stored(3), stored(2, uid="v")], [], {WORKER: 3}, {"POD": 4, "CLAIM": 4}),
        ([], [reserved(3)], {}, {"RESERVED": 4, "OBJECTS": 1}),
        ([], [reserved(3)], {WORKER: 1}, {"RESERVED": 3}),
        # If a stored job has a later update, the larger number of each kind of charge counts.
        ([stored(3)], [reserved(3)], {}, {"POD": 4, "CLAIM": 4, "RESERVED": 4}),
        ([stored(3)], [reserved(5)], {LAUNCHER: 1, WORKER: 3}, {"RESERVED": 2}),
        ([stored(5)], [reserved(3)], {LAUNCHER: 1, WORKER: 3}, {"POD": 2, "CLAIM": 2}),
        ([stored(3)], [msgspec.structs.replace(reserved(3), new=True)], {}, {"POD": 4, "CLAIM": 4}),
        ([stored(3, suspended=True)], [reserved(3)], {LAUNCHER: 1, WORKER: 2}, {"RESERVED": 1}),
        ([stored(1)], [reserved(2, uid="v")], {LAUNCHER: 1, WORKER: 1}, {"RESERVED": 3, "OBJECTS": 1}),
        # A stored job, and a reserved job with the same name and another uid: only one of the two will exist.
        ([stored(1)], [Reservation("w", "job-u", (ReservedPods(WORKER, 2, (RESERVED,)),))], {WORKER: 1},
         {"POD": 1, "CLAIM": 1, "RESERVED": 2}),
    ],
)  # fmt: skip
def test_charges_of_missing_pods_and_of_reservations_are_promised(
    jobs: list[MPIJobRecord], reservations: list[Reservation], made: dict[str, int], expected: dict[str, int]
) -> None:
    assert sums(group(jobs), reservations, existing(made)) == expected


def test_promises_exclude_the_assessed_job() -> None:
    jobs = group([stored(3), stored(2, uid="v")])
    reservations = [reserved(9), reserved(2, uid="v")]
    assert sums(jobs, reservations, existing({WORKER: 1}), but="job-u") == {"POD": 3, "CLAIM": 3, "RESERVED": 3}
    assert sums(jobs, [], existing({WORKER: 1}), but="job-u") == {"POD": 3, "CLAIM": 3}


def test_only_pods_of_the_job_itself_are_counted() -> None:
    strangers = [
        Owned("ns", "a"),
        Owned("ns", "b", Owner("batch", "Job", "job-u", "u")),
        Owned("ns", "c", Owner("kubeflow.org", "MPIJob", "job-u", "v")),
        Owned("ns", "d", Owner("kubeflow.org", "MPIJob", "job-w", "u")),
    ]
    pods: Pods = Group({("ns", each.name): each for each in strangers})
    assert sums(group([stored(3)]), [], pods) == {"POD": 4, "CLAIM": 4}
    counts = pods.derived(pod_counts)
    assert counts.outstanding(group([stored(3)])).missing == {SHAPE: 4}
    for each in strangers:
        pods.drop(("ns", each.name))
    assert counts.made == {}
    assert counts.outstanding(group([stored(3)])).missing == {SHAPE: 4}


def test_running_jobs_are_counted_by_their_shapes() -> None:
    jobs = [stored(3), stored(1, uid="v"), stored(0, uid="w"), stored(2, uid="x", suspended=True)]
    outstanding = without_pods(group(jobs))
    assert outstanding.running == {(SHAPE, SHAPE): 2, (SHAPE,): 1}
    assert outstanding.running_without(jobs[1]) == {(SHAPE, SHAPE): 1, (SHAPE,): 1}
    assert outstanding.running_without(jobs[3]) == outstanding.running_without(None) == outstanding.running


CHANGES = st.lists(
    st.tuples(
        st.sampled_from("uvw"),
        st.one_of(
            st.tuples(st.just("job"), st.integers(0, 3), st.booleans(), st.sampled_from([SHAPE, OTHER])),
            st.tuples(st.just("pod"), st.integers(0, 3), st.sampled_from([LAUNCHER, WORKER]), st.booleans()),
            st.just(("over",)),
        ),
    ),
    max_size=30,
)


def apply(change: tuple[str, tuple[object, ...]], jobs: Jobs, pods: Pods) -> None:
    match change:
        case uid, ("job", int(workers), bool(suspended), PodShape() as shape):
            jobs.put(("ns", f"job-{uid}"), stored(workers, uid=uid, suspended=suspended, shape=shape))
        case uid, ("pod", int(index), str(role), bool(exists)):
            changed = pod(index, role, uid=uid)
            if exists:
                pods.put(("ns", changed.name), changed)
            elif ("ns", changed.name) in pods:
                pods.drop(("ns", changed.name))
        case uid, _ if ("ns", f"job-{uid}") in jobs:
            jobs.drop(("ns", f"job-{uid}"))


@PROPERTY
@given(CHANGES, CHANGES)
def test_updated_sums_equal_recomputed_sums(
    first: list[tuple[str, tuple[object, ...]]], second: list[tuple[str, tuple[object, ...]]]
) -> None:
    jobs: Jobs = Group()
    pods: Pods = Group()
    live = pods.derived(pod_counts).outstanding(jobs)
    for change in first:
        apply(change, jobs, pods)
    frozen = copy(pods)
    live_frozen = frozen.derived(pod_counts).outstanding(jobs)
    for change in second:
        apply(change, jobs, pods)
    for updated, of in ((live, pods), (live_frozen, frozen)):
        expected = pod_counts(of).outstanding(jobs)
        assert (updated.made, updated.missing, updated.running) == (expected.made, expected.missing, expected.running)
        assert 0 not in {*updated.made.values(), *updated.missing.values(), *updated.running.values()}
    assert pods.derived(pod_counts).outstanding(jobs) is live


def test_outstanding_pods_are_recomputed_for_other_jobs() -> None:
    pods = existing({WORKER: 1})
    counts = pods.derived(pod_counts)
    jobs = group([stored(3)])
    assert counts.outstanding(jobs).missing == {SHAPE: 3}
    assert counts.outstanding(group([stored(5)])).missing == {SHAPE: 5}
    assert Made() == without_pods(jobs).copy().made
