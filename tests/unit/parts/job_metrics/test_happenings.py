"""Metrics count the changes of jobs, and show the current numbers of jobs and accelerators."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.devices import claim_template, exactly
from tests.support.job_lives import HOUR, START, condition, life
from webhook.api.pod_resources import ContainerResources, PodResources
from webhook.api.quantity import parse
from webhook.api.quota_charges import PodShape
from webhook.cluster.job_lives import JobLife
from webhook.cluster.limits import MAX_ANNOTATION_CHARACTERS
from webhook.cluster.resources.mpijobs import MPIJobRecord, PodsRecord
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.parts.job_metrics.happenings import Changes, Counted, accelerators, standing
from webhook.server.limits import MAX_USER_SERIES
from webhook.server.namespace_labels import BEYOND, Labels

STARTED = START + 2 * HOUR
NEW = life()
SUSPENDED = life(suspend=True)
STARTING = life("train", condition("Created"), started=STARTED)
RUNNING = life("train", condition("Running", at=STARTED + 30), started=STARTED)
PREEMPTED = life("train", condition("Running", "False"), condition("Suspended"), started=STARTED, suspend=True)
AGAIN = life("train", condition("Running", at=START + 9 * HOUR), started=START + 9 * HOUR)
DONE = life("train", condition("Succeeded"), started=STARTED, completed=STARTED + HOUR)
FAILED = life("train", condition("Failed", reason="DeadlineExceeded"), started=STARTED, completed=STARTED + HOUR)
NEVER_RAN = life("train", condition("Failed", reason="BackoffLimitExceeded"), completed=STARTED)
NEXT = life(uid="the next job with this name")

CREATED = Counted("created_total", "team-a")
QUEUE = Counted("queue_seconds", "team-a", 2 * HOUR + 30)
SUCCEEDED = Counted("succeeded_total", "team-a")
TOOK = Counted("duration_seconds", "team-a", HOUR)


@pytest.mark.parametrize(
    ("history", "counted"),
    [
        ([NEW, STARTING, RUNNING, DONE, None], [CREATED, QUEUE, SUCCEEDED, TOOK]),
        (
            [SUSPENDED, STARTING, RUNNING, FAILED],
            [CREATED, QUEUE, Counted("failed_total", "team-a", reason=("DeadlineExceeded",)), TOOK],
        ),
        # The wait after a preemption is not a wait for the first start.
        ([NEW, RUNNING, PREEMPTED, AGAIN, PREEMPTED, AGAIN], [CREATED, QUEUE]),
        # The job was suspended before all of its pods ran.
        ([NEW, STARTING, PREEMPTED, AGAIN], [CREATED, Counted("queue_seconds", "team-a", 9 * HOUR)]),
        # After a lost watch, the replica sees only the end of the job.
        ([DONE], [CREATED, SUCCEEDED, TOOK]),
        ([NEVER_RAN], [CREATED, Counted("failed_total", "team-a", reason=("BackoffLimitExceeded",))]),
        # Unrelated changes of the status are not counted.
        ([NEW, RUNNING, RUNNING, DONE, DONE], [CREATED, QUEUE, SUCCEEDED, TOOK]),
        # The job is deleted and created again between two events of the watch.
        ([DONE, NEXT, None, NEXT], [CREATED, SUCCEEDED, TOOK, CREATED, CREATED]),
    ],
)
def test_each_change_of_a_job_is_counted_once(history: list[JobLife | None], counted: list[Counted]) -> None:
    changes = Changes()
    steps = zip([None, *history], history, strict=False)
    assert [change for old, new in steps for change in changes.of(old, new)] == counted


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [
        (NEW, RUNNING, [QUEUE]),
        (RUNNING, DONE, [SUCCEEDED, TOOK]),
        (PREEMPTED, AGAIN, []),
        (DONE, DONE, []),
        (DONE, None, []),
    ],
)
def test_changes_before_the_start_of_the_replica_are_not_counted(
    before: JobLife, after: Any, counted: list[Counted]
) -> None:
    assert Changes([before]).of(before, after) == counted


def pods(job: JobLife, gpus: int, *, workers: int = 2, uid: str = "") -> MPIJobRecord:
    requests = {"nvidia.com/gpu": parse(gpus), "cpu": parse(4), "rdma/hca": parse(1)}
    worker = PodShape(PodResources((ContainerResources("spec.containers[0]", requests=requests),)))
    roles = (PodsRecord("Launcher", 1, PodShape(PodResources())), PodsRecord("Worker", workers, worker))
    return MPIJobRecord(job.namespace, job.name, uid or job.uid, pods=roles)


def test_accelerators_of_jobs_that_have_not_ended_are_counted() -> None:
    jobs = {
        ("team-a", "runs"): life("runs", condition("Running"), started=STARTED),
        ("team-a", "waits"): life("waits", suspend=True),
        ("team-a", "starts"): life("starts", started=STARTED),
        ("team-a", "unseen"): life("unseen"),
        ("team-a", "replaced"): life("replaced"),
        ("team-a", "done"): life("done", condition("Succeeded"), completed=STARTED),
        ("team-b", "runs"): life("runs", condition("Running"), namespace="team-b"),
    }
    records = {key: pods(job, 8) for key, job in jobs.items() if job.name != "unseen"}
    records["team-a", "replaced"] = pods(jobs["team-a", "replaced"], 8, uid="an earlier job")
    counts = standing(jobs.values(), records, NothingKnown(), namespaces=Labels(9))
    assert counts == {
        ("running", "team-a"): 1,
        ("running", "team-b"): 1,
        ("queued", "team-a"): 4,
        ("gpus_requested", "team-a", "nvidia.com/gpu"): 48,
        ("gpus_requested", "team-b", "nvidia.com/gpu"): 16,
        ("gpus_in_use", "team-a", "nvidia.com/gpu"): 16,
        ("gpus_in_use", "team-b", "nvidia.com/gpu"): 16,
        ("user_gpus_in_use", "team-a", "_unknown", "nvidia.com/gpu"): 16,
        ("user_gpus_in_use", "team-b", "_unknown", "nvidia.com/gpu"): 16,
    }
    bounded = standing(jobs.values(), records, NothingKnown(), namespaces=Labels(1))
    assert bounded["running", BEYOND] == 1
    assert bounded["gpus_requested", BEYOND, "nvidia.com/gpu"] == 16


def running(name: str, creator: str | None, namespace: str = "team-a") -> JobLife:
    annotations = None if creator is None else {"created-by": creator}
    return life(name, condition("Running"), started=STARTED, namespace=namespace, annotations=annotations)


def by_user(jobs: list[JobLife], gpus: int = 4) -> dict[tuple[str, ...], int]:
    records = {(job.namespace, job.name): pods(job, gpus) for job in jobs}
    counts = standing(jobs, records, NothingKnown(), namespaces=Labels(9))
    return {tuple(labels): count for (metric, *labels), count in counts.items() if metric == "user_gpus_in_use"}


def test_accelerators_in_use_are_counted_by_creator() -> None:
    leaving = replace(running("ends", "alice"), leaving=True)
    jobs = [running("a", "alice"), running("b", "alice"), running("c", "alice", "team-b"), running("d", None), leaving]
    assert by_user(jobs) == {
        ("team-a", "alice", "nvidia.com/gpu"): 16,
        ("team-b", "alice", "nvidia.com/gpu"): 8,
        ("team-a", "_unknown", "nvidia.com/gpu"): 8,
    }


def test_users_with_the_most_accelerators_get_their_own_label() -> None:
    """A tenant with many ServiceAccounts and small jobs must not use up the labels for other users."""
    jobs = [running(f"job-{number}", f"a-robot-{number}") for number in range(MAX_USER_SERIES + 5)]
    jobs += [running("one", "zoe"), running("two", "zoe")]
    counts = by_user(jobs)
    assert len(counts) == MAX_USER_SERIES + 1
    assert counts["team-a", "zoe", "nvidia.com/gpu"] == 16
    assert counts["team-a", BEYOND, "nvidia.com/gpu"] == 8 * 6
    assert by_user(jobs[::-1]) == counts, "the labels are the same on every replica"


def test_long_name_of_a_user_is_cut() -> None:
    (series,) = by_user([running("a", "x" * 9999)])
    assert series == ("team-a", "x" * MAX_ANNOTATION_CHARACTERS, "nvidia.com/gpu")


def test_devices_of_claims_are_counted_if_their_number_is_fixed() -> None:
    one_or_four = [{"deviceClassName": "gpu.nvidia.com"}, {"deviceClassName": "mig.nvidia.com", "count": 4}]
    requests = {
        "two": exactly(count=2),
        "one or four": {"name": "r", "firstAvailable": one_or_four},
        "all": exactly(allocationMode="All"),
        "admin access": exactly(adminAccess=True),
        "not a GPU": exactly("nic.example.com"),
    }
    view = Snapshot([claim_template(name, request) for name, request in requests.items()])
    job = life("runs", condition("Running"), started=STARTED)
    worker = PodShape(PodResources(), device_claims=(*requests, "gone"))
    record = MPIJobRecord("team-a", "runs", job.uid, pods=(PodsRecord("Worker", 4, worker),))
    counts = standing([job], {("team-a", "runs"): record}, view, namespaces=Labels(9))
    name = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
    assert counts == {
        ("running", "team-a"): 1,
        ("gpus_requested", "team-a", name): 12,
        ("gpus_in_use", "team-a", name): 12,
        ("user_gpus_in_use", "team-a", "_unknown", name): 12,
    }


def test_names_of_mig_resources_are_combined_into_one_label() -> None:
    requests = {"nvidia.com/mig-1g.5gb": parse(1), "nvidia.com/mig-of a user": parse(2), "a.com/gpu": parse(3)}
    shape = PodShape(PodResources((ContainerResources("spec.containers[0]", requests=requests),)))
    assert accelerators(shape) == (("nvidia.com/mig-*", 1), ("nvidia.com/mig-*", 2))


STATES = (NEW, SUSPENDED, STARTING, RUNNING, PREEMPTED, AGAIN, DONE, FAILED)
ORDER = {id(state): at for at, state in enumerate(STATES)}


@given(
    lives=st.lists(st.lists(st.sampled_from(STATES), max_size=5), max_size=8),
    begins=st.integers(0, 5),
)
def test_replica_counts_exactly_the_changes_since_its_start(lives: list[list[JobLife]], begins: int) -> None:
    histories = [sorted(states, key=lambda state: ORDER[id(state)]) for states in lives]
    first, later = Counter[str](), Counter[str]()
    for history in histories:
        old: JobLife | None = None
        changes, since = Changes(), Changes()
        for step, new in enumerate(history):
            first.update(change.metric for change in changes.of(old, new))
            if step == begins and old is not None:
                since = Changes([old])
            if step >= begins:
                later.update(change.metric for change in since.of(old, new))
            old = new
    created = sum(bool(history) for history in histories)
    over = sum(bool(history) and history[-1].over for history in histories)
    assert first["created_total"] == created
    assert first["succeeded_total"] + first["failed_total"] == first["duration_seconds"] == over
    assert first["queue_seconds"] == sum(any(state is RUNNING or state is AGAIN for state in h) for h in histories)
    assert all(later[metric] <= first[metric] for metric in later)
