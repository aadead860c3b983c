"""The rules about Kueue's queues and about time limits judge TrainJobs."""

from typing import Any

import pytest

from tests.support import trainer
from tests.support.kueue_objects import CONFIG, cluster_queue, config, flavor, local_queue, namespace
from tests.support.quota_objects import quota
from tests.support.trainer import Runtimes, runtime, train_job
from webhook.api.kueue import FRAMEWORK, QUEUE_NAME
from webhook.cluster.snapshot import Snapshot
from webhook.parts.trainer.quota import JOBS
from webhook.parts.trainer.resources import RUNTIMES

LABEL = f"metadata.labels[{QUEUE_NAME}]"
BOTH, ONLY_MPI_JOBS = config(text=CONFIG.replace(FRAMEWORK, f"{FRAMEWORK}, {JOBS.framework}")), config()
GPUS = {"numNodes": 4, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}


class Cluster(Snapshot):
    def __init__(self, *objects: Any) -> None:
        super().__init__([namespace("team"), *objects])
        self._runtimes = Runtimes(runtime())

    def get(self, resource: Any, key: Any) -> Any:
        return self._runtimes.get(resource, key) if resource in RUNTIMES else super().get(resource, key)


def decide(*objects: Any, queue: str = "train", policy: str = "", **spec: Any) -> Any:
    manifest = train_job(**GPUS)
    manifest["metadata"]["labels"] = {QUEUE_NAME: queue} if queue else {}
    manifest["spec"] |= spec
    return trainer.decide(manifest, policy=policy, view=Cluster(*objects))


def violations(decision: Any) -> list[tuple[str, str, str, str]]:
    return [
        (finding.rule, finding.violation.path, finding.violation.message, finding.violation.fix)
        for finding in (*decision.denied, *decision.warned)
    ]


QUEUE = local_queue("train", "gpus", namespace="team")


def test_job_in_a_queue_with_enough_quota_has_no_violation() -> None:
    behind = cluster_queue("gpus", {"h100": {"nvidia.com/gpu": 16}})

    assert violations(decide(BOTH, QUEUE, behind, flavor("h100"))) == []


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([BOTH, local_queue("other", "gpus", namespace="team")], "LocalQueue train doesn't exist"),
        (
            [ONLY_MPI_JOBS, QUEUE],
            f"Kueue does not manage TrainJobs here (its configuration lacks {JOBS.framework})",
        ),
    ],
)
def test_job_is_rejected_if_its_queue_is_missing_or_kueue_does_not_manage_train_jobs(
    objects: list[Any], expected: str
) -> None:
    ((rule, path, message, _),) = violations(decide(*objects, cluster_queue("gpus")))

    assert (rule, path, message) == ("local-queue", LABEL, expected)


def test_job_in_a_queue_that_is_too_small_is_rejected() -> None:
    behind = cluster_queue("gpus", {"h100": {"nvidia.com/gpu": 8}})

    ((rule, path, message, fix),) = violations(decide(BOTH, QUEUE, behind, flavor("h100")))

    assert (rule, path) == ("ever-fits", "spec.runtimeRef")
    assert "nvidia.com/gpu > " in message
    assert fix == "Use 2 nodes."


def test_queued_train_job_above_a_resource_quota_gets_a_warning() -> None:
    objects = (quota({"requests.nvidia.com/gpu": 32}, {"requests.nvidia.com/gpu": 24}, namespace="team"), QUEUE)
    behind = cluster_queue("gpus", {"h100": {"nvidia.com/gpu": 16}})

    waits = decide(BOTH, *objects, behind, flavor("h100"))
    starts = decide(ONLY_MPI_JOBS, *objects, behind, flavor("h100"))

    assert [rule for rule, *_ in violations(waits)] == ["resource-quota"]
    assert waits.allowed
    assert not starts.allowed


def test_time_limit_above_the_maximum_is_rejected() -> None:
    policy = "rules: {job-timeout: {max: 1h}}"

    assert decide(queue="", policy=policy).allowed
    assert decide(queue="", policy=policy, activeDeadlineSeconds=3600).allowed
    assert violations(decide(queue="", policy=policy, activeDeadlineSeconds=3601)) == [
        (
            "job-timeout",
            "spec.activeDeadlineSeconds",
            "3601 s are longer than 1h (3600 s)",
            "Set it to 3600 or less, or ask for an exemption.",
        )
    ]
