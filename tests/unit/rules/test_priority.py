import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.kueue_objects import priority_class, workload_priority_class
from tests.support.rule_checks import as_texts, violations
from webhook.admission.messages import Finding
from webhook.cluster.snapshot import Snapshot
from webhook.rules import REGISTRY, CauseReason, Violation

POLICY = "spec.runPolicy.schedulingPolicy.priorityClass"
LAUNCHER = "spec.mpiReplicaSpecs[Launcher].template.spec.priorityClassName"
WORKER = "spec.mpiReplicaSpecs[Worker].template.spec.priorityClassName"
LABEL = "metadata.labels[kueue.x-k8s.io/priority-class]"

QUEUED = {"kueue.x-k8s.io/queue-name": "team"}
OURS = {"kueue.x-k8s.io/priority-class": "gone"}
ABSENT = 'PriorityClass "gone" does not exist'
NO_WORKLOAD = f"{ABSENT}, so Kueue builds no Workload and reports nothing: the job waits for ever"
NO_PODS = f"{ABSENT}, so the API server rejects the pods"
NONE_EXISTS = "Remove it: none of the allowed classes exists."
FIX = "Name an existing PriorityClass (kubectl get priorityclass), or remove it."
OBJECTS = [priority_class("high"), workload_priority_class("prod")]
CLUSTER = Snapshot(OBJECTS)


def job(
    *, labels: dict[str, str] | None = None, policy: str | None = None, launcher: str = "", worker: str = ""
) -> Json:
    return {
        "metadata.labels": labels,
        "spec.runPolicy.schedulingPolicy": {"priorityClass": policy},
        "Launcher.template.spec.priorityClassName": launcher,
        "Worker.template.spec.priorityClassName": worker,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        job(),
        job(launcher="high", worker="high", policy="high"),
        job(labels={**QUEUED, "kueue.x-k8s.io/priority-class": "prod"}, worker="high"),
        job(launcher="system-node-critical", worker="system-cluster-critical"),
    ],
)
def test_existing_class_is_accepted(changes: Json) -> None:
    assert violations("priority", changes, view=CLUSTER) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (job(worker="gone"), [f"{WORKER}: {NO_PODS}"]),
        (job(launcher="gone", worker="high"), [f"{LAUNCHER}: {NO_PODS}"]),
        (job(launcher="gone", worker="gone"), [f"{LAUNCHER}: {NO_PODS}", f"{WORKER}: {NO_PODS}"]),
        # Kueue reads only the first PriorityClass in the order schedulingPolicy, launcher, worker.
        (job(labels=QUEUED, worker="gone"), [f"{WORKER}: {NO_WORKLOAD}"]),
        (job(labels=QUEUED, launcher="gone", worker="gone"), [f"{LAUNCHER}: {NO_WORKLOAD}", f"{WORKER}: {NO_PODS}"]),
        (job(labels=QUEUED, policy="gone", worker="high"), [f"{POLICY}: {NO_WORKLOAD}"]),
        (job(labels=QUEUED, policy="high", worker="gone"), [f"{WORKER}: {NO_PODS}"]),
        # Kueue prefers the class in the label.
        (
            job(labels={**QUEUED, "kueue.x-k8s.io/priority-class": "prod"}, policy="gone"),
            [f"(advice) {POLICY}: {ABSENT}"],
        ),
        (job(labels={**QUEUED, "kueue.x-k8s.io/priority-class": "prod"}, worker="gone"), [f"{WORKER}: {NO_PODS}"]),
        (
            job(labels={**QUEUED, **OURS}),
            [
                f'{LABEL}: WorkloadPriorityClass "gone" does not exist, so Kueue builds no Workload and the job waits '
                "for ever"
            ],
        ),
        # Without Kueue, only Volcano could read schedulingPolicy.priorityClass.
        (job(policy="gone"), [f"(advice) {POLICY}: {ABSENT}"]),
    ],
)
def test_missing_class_is_reported(changes: Json, expected: list[str]) -> None:
    assert as_texts(violations("priority", changes, view=CLUSTER)) == expected


def test_violation_has_path_message_fix_and_reason() -> None:
    expected = [Violation(WORKER, NO_PODS, fix=FIX, reason=CauseReason.NOT_SUPPORTED)]
    assert violations("priority", job(worker="gone"), view=CLUSTER) == expected
    label = violations("priority", job(labels={**QUEUED, **OURS}), view=CLUSTER)
    assert label[0].fix == "Name an existing WorkloadPriorityClass (kubectl get workloadpriorityclass), or remove it."


def test_class_is_accepted_if_the_classes_of_the_cluster_are_unknown() -> None:
    changes = job(labels={**QUEUED, **OURS}, policy="gone", launcher="gone", worker="gone")
    assert violations("priority", changes) == []


@pytest.mark.parametrize(
    ("allowed", "fix"),
    [
        (["low"], "Use low, or remove it."),
        (["low", "high"], "Use one of low, high, or remove it."),
        (list("abcdef"), "Use one of a, b, c, d, e, ..., or remove it."),
    ],
)
def test_class_that_is_not_allowed_is_rejected(allowed: list[str], fix: str) -> None:
    """The rule rejects the class without knowing whether the class exists."""
    changes = job(labels={"kueue.x-k8s.io/priority-class": "urgent"}, policy="urgent", worker="urgent")
    fault = '"urgent" is not allowed here'
    result = violations("priority", changes, settings={"allowed": allowed, "allowedWorkload": allowed})
    assert result == [Violation(path, fault, fix=fix, reason=CauseReason.FORBIDDEN) for path in (LABEL, POLICY, WORKER)]
    assert as_texts(violations("priority", changes, settings={"allowed": allowed})) == [
        f"{POLICY}: {fault}",
        f"{WORKER}: {fault}",
    ]


def test_built_in_class_that_is_not_allowed_is_rejected() -> None:
    result = violations("priority", job(worker="system-node-critical"), settings={"allowed": ["high"]}, view=CLUSTER)
    assert [violation.reason for violation in result] == [CauseReason.FORBIDDEN]


@pytest.mark.parametrize(("allowed", "fix"), [(["gone"], NONE_EXISTS), (["gone", "high"], "Use high.")])
def test_missing_class_that_is_allowed_is_reported(allowed: list[str], fix: str) -> None:
    (result,) = violations("priority", job(worker="gone"), settings={"allowed": allowed}, view=CLUSTER)
    assert (result.message, result.fix) == (NO_PODS, fix)


@pytest.mark.parametrize(
    ("allowed", "fix"),
    [
        (["gone"], NONE_EXISTS),
        (["gone", "high", "prod"], "Use one of high, prod, or remove it."),
    ],
)
def test_missing_class_is_not_suggested(allowed: list[str], fix: str) -> None:
    """The fix leaves out a class only if the class is known to be missing."""
    both = Snapshot([*OBJECTS, priority_class("prod"), workload_priority_class("high")])
    changes = job(labels={"kueue.x-k8s.io/priority-class": "urgent"}, worker="urgent")
    result = violations("priority", changes, settings={"allowed": allowed, "allowedWorkload": allowed}, view=both)
    assert [violation.fix for violation in result] == [fix, fix]


def test_long_name_is_shortened() -> None:
    (result,) = violations("priority", job(worker="x" * 200), settings={"allowed": ["high"]})
    assert result.message == f'"{"x" * 97}..." is not allowed here'


@pytest.mark.parametrize("setting", ["allowed", "allowedWorkload"])
@pytest.mark.parametrize("name", ["", "High", "a b"])
def test_invalid_settings_are_rejected(setting: str, name: str) -> None:
    with pytest.raises(ValidationError):
        REGISTRY["priority"].settings.model_validate({setting: [name]})


def with_priority(priority: object = None, policy: object = None, name: str = "") -> Json:
    spec = "Worker.template.spec"
    return {f"{spec}.priority": priority, f"{spec}.preemptionPolicy": policy, f"{spec}.priorityClassName": name}


CLASSES = [priority_class("high", value=10), priority_class("gentle", value=5, preemptionPolicy="Never")]
DEFAULTS = [
    *CLASSES,
    priority_class("default", value=7, globalDefault=True),
    priority_class("second-default", value=9, globalDefault=True),
]
PREEMPTS = "PreemptLowerPriority"


@pytest.mark.parametrize(
    ("changes", "objects"),
    [
        (with_priority(0, "PreemptLowerPriority"), None),
        (with_priority(2_000_001_000, name="system-node-critical"), None),
        (with_priority(1000, "Never", "high"), None),  # it is unknown whether the class exists
        (with_priority(None, ""), CLASSES),
        (with_priority(None, "Sometimes"), CLASSES),  # the rule `pod-template` reports it
    ],
)
def test_priority_of_the_class_is_accepted(changes: Json, objects: list[Json] | None) -> None:
    assert violations("priority", changes, view=Snapshot(objects) if objects else None) == []


@pytest.mark.parametrize(
    ("changes", "objects", "stated", "valid", "source"),
    [
        (with_priority(1000), CLASSES, 1000, 0, "no PriorityClass"),
        (with_priority(0), DEFAULTS, 0, 7, 'PriorityClass "default"'),
        (with_priority(1000, name="high"), CLASSES, 1000, 10, 'PriorityClass "high"'),
        (
            with_priority(policy=PREEMPTS, name="gentle"),
            CLASSES,
            PREEMPTS,
            "Never",
            'PriorityClass "gentle"',
        ),
    ],
)
def test_priority_that_differs_from_the_class_is_rejected(
    changes: Json, objects: list[Json], stated: object, valid: object, source: str
) -> None:
    (result,) = violations("priority", changes, view=Snapshot(objects))
    field = "priority" if isinstance(stated, int) else "preemptionPolicy"
    fault = f"is {stated}, but only {valid} is valid ({source}: the pods are rejected)"
    assert as_texts([result]) == [f"spec.mpiReplicaSpecs[Worker].template.spec.{field}: {fault}"]
    assert result.fix == ("Remove it, or set priorityClassName." if source.startswith("no") else "Remove it.")


def test_priority_without_class_is_a_warning_if_the_default_class_is_unknown() -> None:
    (result,) = violations("priority", with_priority(1000))
    assert result.advisory
    assert Finding("priority", result).warning.endswith(f"{result.fix} [priority]")


@pytest.mark.parametrize("name", ["gone", ""])
def test_priority_of_a_missing_class_is_reported_once(name: str) -> None:
    assert len(violations("priority", with_priority(1000, name=name), view=CLUSTER)) == 1


@pytest.mark.parametrize("view", [None, CLUSTER])
def test_invalid_class_name_is_reported(view: Snapshot | None) -> None:
    (result,) = violations("priority", job(worker="High Prio"), view=view)
    fault = '"High Prio" contains "H"; allowed are lower case letters, digits, "-" and "."'
    assert as_texts([result]) == [f"{WORKER}: {fault}"]
    assert result.fix == "Write high-prio."
