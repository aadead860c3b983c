import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.devices import claim_template, claims, exactly
from tests.support.jobs import REMOVE
from tests.support.rule_checks import as_texts, violations
from webhook.cluster.snapshot import Snapshot
from webhook.rules import REGISTRY, CauseReason, Violation

WORKERS = "spec.mpiReplicaSpecs[Worker].replicas"
JOB = "spec.mpiReplicaSpecs"
POLICY = "spec.runPolicy.schedulingPolicy"
ASK = "ask your administrator for another tier"
LAUNCHER_GPUS = "Launcher.template.spec.containers.0.resources.limits"
WORKER_GPUS = "Worker.template.spec.containers.0.resources.limits"
TOGETHER = {"spec.runLauncherAsWorker": True}
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
EVERYTHING: Json = {
    **TOGETHER,
    "metadata.annotations": {VOLCANO_QUEUE: "q"},
    "metadata.labels": {"kueue.x-k8s.io/priority-class": "prod"},
    POLICY: {"minAvailable": 5, "queue": "q", "minResources": {}, "scheduleTimeoutSeconds": 0, "priorityClass": "high"},
    "Launcher.template.spec.priorityClassName": "high",
    "Worker.template.spec.priorityClassName": "high",
    "Worker.replicas": 1000,
    "spec.mpiImplementation": "Intel",
}


def test_nothing_is_limited_by_default() -> None:
    assert violations("tier", EVERYTHING) == []
    assert violations("tier", EVERYTHING, settings={"name": "base"}) == []


@pytest.mark.parametrize(
    ("changes", "most", "message", "fix"),
    [
        ({"Worker.replicas": 8}, 8, None, ""),
        ({"Worker.replicas": 9}, 8, "9 workers, {} allows at most 8", "Set replicas to 8 or fewer"),
        (
            {"Worker.replicas": 8, **TOGETHER},
            8,
            "9 workers (the launcher is one of them), {} allows at most 8",
            "Set replicas to 7 or fewer",
        ),
        ({"Worker": REMOVE}, 2, None, ""),
    ],
)
def test_workers_above_the_tier_are_rejected(changes: Json, most: int, message: str | None, fix: str) -> None:
    for name, tier in (("base", 'the tier "base"'), ("", "your tier")):
        result = violations("tier", changes, settings={"name": name, "maxWorkers": most})
        text = (message or "").format(tier)
        expected = Violation(WORKERS, text, fix=f"{fix}, or {ASK}.", reason=CauseReason.FORBIDDEN)
        assert result == ([expected] if message else [])


@pytest.mark.parametrize(
    ("changes", "most", "gpus"),
    [
        ({}, 8, None),
        ({}, 7, "8 GPUs (2 in each of 4 workers)"),
        ({LAUNCHER_GPUS: {"nvidia.com/gpu": 1}}, 9, None),
        ({LAUNCHER_GPUS: {"nvidia.com/gpu": 1}}, 8, "9 GPUs (2 in each of 4 workers, 1 in the launcher)"),
        ({LAUNCHER_GPUS: {"nvidia.com/gpu": 1}, WORKER_GPUS: {}}, 0, "1 GPU (1 in the launcher)"),
        ({LAUNCHER_GPUS: {"nvidia.com/gpu": 1}, "Worker": REMOVE}, 0, "1 GPU (1 in the launcher)"),
        ({WORKER_GPUS: {"nvidia.com/gpu": "many"}}, 0, None),  # the rule `upstream-contract` reports it
    ],
)
def test_gpus_above_the_tier_are_rejected(changes: Json, most: int, gpus: str | None) -> None:
    settings = {"maxGpus": most, "resources": ["nvidia.com/gpu", "example.com/*"]}
    fix = f"Request {most} or fewer in all, or {ASK}." if most else f"Request none, or {ASK}."
    message = f"{gpus}, your tier allows at most {most} in a job"
    expected = [Violation(JOB, message, fix=fix, reason=CauseReason.FORBIDDEN)] if gpus else []
    assert violations("tier", changes, settings=settings) == expected


@pytest.mark.parametrize(
    ("value", "included", "fix"),
    [
        ("OpenMPI", ["OpenMPI"], None),
        ("Intel", ["OpenMPI"], f"Use OpenMPI, or {ASK}."),
        ("Intel", ["OpenMPI", "MPICH"], f"Use one of OpenMPI, MPICH, or {ASK}."),
        ("nonsense", ["OpenMPI"], None),  # the rule `upstream-contract` reports unknown names
    ],
)
def test_implementation_outside_the_tier_is_rejected(value: object, included: list[str], fix: str | None) -> None:
    result = violations("tier", {"spec.mpiImplementation": value}, settings={"name": "a", "implementations": included})
    message = f'"{value}" is not in the tier "a", which has {", ".join(included)}'
    path = "spec.mpiImplementation"
    assert result == ([Violation(path, message, fix=fix, reason=CauseReason.FORBIDDEN)] if fix else [])


LAUNCHER_AS_WORKER = "spec.runLauncherAsWorker"
GANG = [
    *(f"{POLICY}.{name}" for name in ("minAvailable", "queue", "minResources", "scheduleTimeoutSeconds")),
    f"metadata.annotations[{VOLCANO_QUEUE}]",
]
PRIORITY = [
    "metadata.labels[kueue.x-k8s.io/priority-class]",
    f"{POLICY}.priorityClass",
    "spec.mpiReplicaSpecs[Launcher].template.spec.priorityClassName",
    "spec.mpiReplicaSpecs[Worker].template.spec.priorityClassName",
]


@pytest.mark.parametrize(
    ("features", "missing"),
    [
        ([], [LAUNCHER_AS_WORKER, *GANG, *PRIORITY]),
        (["runLauncherAsWorker"], [*GANG, *PRIORITY]),
        (["runLauncherAsWorker", "gangScheduling", "priorityScheduling"], []),
        (None, []),
    ],
)
def test_feature_outside_the_tier_is_rejected(features: list[str] | None, missing: list[str]) -> None:
    result = violations("tier", EVERYTHING, settings={"features": features})
    assert [violation.path for violation in result] == missing
    assert {violation.fix for violation in result} <= {f"Remove it, or {ASK}.", f"Set it to false, or {ASK}."}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metadata.labels": {"kueue.x-k8s.io/priority-class": "default"}},
    ],
)
def test_unused_feature_is_accepted(changes: Json) -> None:
    assert violations("tier", changes, settings={"features": []}) == []


@pytest.mark.parametrize(
    ("features", "included"),
    [
        (["gangScheduling", "priorityScheduling"], "gangScheduling, priorityScheduling"),
        ([], "no optional features"),
    ],
)
def test_message_lists_the_features_of_the_tier(features: list[str], included: str) -> None:
    result = violations("tier", TOGETHER, settings={"name": "base", "features": features})
    message = f'runLauncherAsWorker is not in the tier "base", which has {included}'
    expected = Violation(LAUNCHER_AS_WORKER, message, fix=f"Set it to false, or {ASK}.", reason=CauseReason.FORBIDDEN)
    assert result == [expected]


def test_all_violations_are_reported() -> None:
    settings = {"name": "base", "maxWorkers": 8, "maxGpus": 16, "implementations": ["OpenMPI"], "features": []}
    result = as_texts(
        violations("tier", {**TOGETHER, "Worker.replicas": 9, "spec.mpiImplementation": "MPICH"}, settings=settings)
    )
    assert [line.partition(":")[0] for line in result] == [WORKERS, JOB, "spec.mpiImplementation", LAUNCHER_AS_WORKER]


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "x" * 41},
        {"name": "a\nb"},
        {"resources": ["gpu"]},
    ],
)
def test_invalid_settings_are_rejected(settings: Json) -> None:
    with pytest.raises(ValidationError):
        REGISTRY["tier"].settings.model_validate(settings)


def test_gpus_of_claims_count_for_the_tier() -> None:
    view = Snapshot([claim_template("t", exactly(count=4))])
    changes = {**claims("t"), "Worker.replicas": 3}
    assert violations("tier", changes, settings={"maxGpus": 12}, view=view) == []
    [violation] = violations("tier", changes, settings={"maxGpus": 11}, view=view)
    assert violation.message == "12 GPUs (4 in each of 3 workers), your tier allows at most 11 in a job"
    gpus, others = ({"deviceClassName": name, "count": 4} for name in ("gpu.nvidia.com", "other.example.com"))
    view = Snapshot([claim_template("t", {"name": "r", "firstAvailable": [others, gpus]})])
    assert violations("tier", changes, settings={"maxGpus": 11}, view=view) == [violation], "the largest choice applies"


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_claim_with_an_unknown_number_of_gpus_causes_a_warning(role: str) -> None:
    view = Snapshot([claim_template("other")])
    (violation,) = violations("tier", claims("t", role=role), settings={"maxGpus": 8}, view=view)
    assert violation.path == f"spec.mpiReplicaSpecs[{role}].template.spec.resourceClaims[0]"
    assert violation.message == 'the GPUs of claim "c0" are not counted: its template ("t") does not exist'
    assert violation.advisory
    assert violations("tier", claims("t"), settings={"maxWorkers": 8}) == []
