from typing import Any

import pytest

from tests.support.any_job import Json
from tests.support.jobs import REMOVE
from tests.support.rule_checks import violations
from webhook.rules import Violation

PATH = "spec.mpiReplicaSpecs[Worker].replicas"
LAUNCHER = "(the launcher is one of them)"


def replicas(count: Any, *, launcher: bool = False) -> Json:
    return {"Worker.replicas": count, "spec.runLauncherAsWorker": launcher}


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        (replicas(2), {}),
        (replicas(100), {}),
        (replicas(1, launcher=True), {}),
        (replicas(99, launcher=True), {}),
        (replicas(1), {"min": 1}),
        ({"Worker": REMOVE}, {"min": 0}),
        ({"Worker": REMOVE, "spec.runLauncherAsWorker": True}, {"min": 1}),
        (replicas(101), {"max": 101}),
        # The rule `upstream-contract` reports the following jobs.
        (replicas(REMOVE), {}),
        (replicas(-3), {}),
        ({"Worker": REMOVE, "spec.mpiReplicaSpecs.worker": {"replicas": 2}}, {}),
    ],
)
def test_count_within_the_limits_is_accepted(changes: Json, settings: Json) -> None:
    assert violations("worker-count", changes, settings=settings) == []


@pytest.mark.parametrize(
    ("changes", "settings", "message", "fix"),
    [
        (replicas(1), {}, "1 worker, at least 2 required", "Set replicas to 2 or more."),
        ({"Worker": REMOVE}, {}, "0 workers, at least 2 required", "Add Worker, with replicas: 2 or more."),
        (replicas(101), {}, "101 workers, at most 100 allowed", "Set replicas to 100 or fewer."),
        (replicas(3), {"max": 2}, "3 workers, at most 2 allowed", "Set replicas to 2 or fewer."),
        (
            {"Worker": REMOVE, "spec.mpiReplicaSpecs.worker": {"replicas": 1}},
            {},
            "1 worker, at least 2 required",
            "Set replicas to 2 or more.",
        ),
        (
            {"Worker": REMOVE, "spec.runLauncherAsWorker": True},
            {},
            f"1 worker {LAUNCHER}, at least 2 required",
            "Add Worker, with replicas: 1 or more.",
        ),
        (
            replicas(1, launcher=True),
            {"min": 1, "max": 1},
            f"2 workers {LAUNCHER}, at most 1 allowed",
            "Set spec.runLauncherAsWorker to false.",
        ),
        (
            replicas(100, launcher=True),
            {},
            f"101 workers {LAUNCHER}, at most 100 allowed",
            "Set replicas to 99 or fewer.",
        ),
    ],
)
def test_count_outside_the_limits_is_rejected(changes: Json, settings: Json, message: str, fix: str) -> None:
    path = PATH.replace("Worker", "worker") if "spec.mpiReplicaSpecs.worker" in changes else PATH
    assert violations("worker-count", changes, settings=settings) == [Violation(path, message, fix=fix)]
