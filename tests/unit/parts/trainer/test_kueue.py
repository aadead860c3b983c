"""TrainJobs in queues of Kueue, and how long they may run."""

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
BOTH, MPI_JOBS_ALONE = config(text=CONFIG.replace(FRAMEWORK, f"{FRAMEWORK}, {JOBS.framework}")), config()
GPUS = {"numNodes": 4, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}


class Cluster(Snapshot):
    """These objects, and a runtime."""

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


def told(decision: Any) -> list[tuple[str, str, str, str]]:
    findings = [*decision.denied, *decision.warned]
    return [(each.rule, each.violation.path, each.violation.message, each.violation.fix) for each in findings]


QUEUE = local_queue("train", "gpus", namespace="team")


def test_a_queue_that_takes_the_job() -> None:
    behind = cluster_queue("gpus", {"h100": {"nvidia.com/gpu": 16}})

    assert told(decide(BOTH, QUEUE, behind, flavor("h100"))) == []


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        ([BOTH, local_queue("other", "gpus", namespace="team")], "LocalQueue train doesn't exist"),
        (
            [MPI_JOBS_ALONE, QUEUE],
            f"Kueue does not manage TrainJobs here (its configuration lacks {JOBS.framework})",
        ),
    ],
)
def test_a_queue_that_takes_none(objects: list[Any], found: str) -> None:
    ((rule, path, message, _),) = told(decide(*objects, cluster_queue("gpus")))

    assert (rule, path, message) == ("local-queue", LABEL, found)


def test_a_queue_that_is_too_small_for_ever() -> None:
    behind = cluster_queue("gpus", {"h100": {"nvidia.com/gpu": 8}})

    ((rule, path, message, fix),) = told(decide(BOTH, QUEUE, behind, flavor("h100")))

    assert (rule, path) == ("ever-fits", "spec.runtimeRef")
    assert "nvidia.com/gpu > " in message
    assert fix == "Use 2 nodes."


def test_queued_train_job_is_not_rejected_for_a_quota() -> None:
    objects = (quota({"requests.nvidia.com/gpu": 32}, {"requests.nvidia.com/gpu": 24}, namespace="team"), QUEUE)
    behind = cluster_queue("gpus", {"h100": {"nvidia.com/gpu": 16}})

    waits = decide(BOTH, *objects, behind, flavor("h100"))
    starts = decide(MPI_JOBS_ALONE, *objects, behind, flavor("h100"))

    assert [rule for rule, *_ in told(waits)] == ["resource-quota"]
    assert waits.allowed
    assert not starts.allowed


def test_how_long_it_may_run() -> None:
    policy = "rules: {job-timeout: {max: 1h}}"

    assert decide(queue="", policy=policy).allowed
    assert decide(queue="", policy=policy, activeDeadlineSeconds=3600).allowed
    assert told(decide(queue="", policy=policy, activeDeadlineSeconds=3601)) == [
        (
            "job-timeout",
            "spec.activeDeadlineSeconds",
            "3601 s are longer than 1h (3600 s)",
            "Set it to 3600 or less, or ask for an exemption.",
        )
    ]
