from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.jobs import REMOVE
from tests.support.rule_checks import fits_a_warning, violations
from tests.support.snapshots import head
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason, Violation
from webhook.rules.gang import Settings

POLICY = "spec.runPolicy.schedulingPolicy"
MIN = f"{POLICY}.minAvailable"
TIMEOUT = f"{POLICY}.scheduleTimeoutSeconds"
QUEUE = f"{POLICY}.queue"
LAUNCHER_SCHEDULER = "spec.mpiReplicaSpecs[Launcher].template.spec.schedulerName"
ANNOTATION = "scheduling.volcano.sh/queue-name"

WAIT = {"spec.launcherCreationPolicy": "WaitForWorkersReady"}
SUSPENDED = {"spec.runPolicy.suspend": True}
KUEUE = {"metadata.labels": {"kueue.x-k8s.io/queue-name": "team"}}
MISSPELT = {"metadata.labels": {"kueue.x-k8s.io/queue": "q"}}
VOLCANO = {"scheduler": "volcano"}
COSCHEDULING = {"scheduler": "scheduler-plugins-scheduler"}
VOID = Violation(
    "spec.launcherCreationPolicy",
    "has no effect in a queue",
    fix='Annotate training.openshift.io/worker-readiness: "true".',
    advisory=True,
)
BOTH = {f"{role}.template.spec.schedulerName": "other" for role in ("Launcher", "Worker")}
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
POD_GROUP = {"Worker.template.metadata": {"labels": {GROUP_LABEL: "train"}}}


def policy(**fields: Any) -> Json:
    return {POLICY: fields}


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        ({}, {}),
        ({}, VOLCANO),
        (WAIT, {}),
        (policy(), {}),
        (policy(minAvailable=1), VOLCANO),
        (policy(minAvailable=1) | WAIT | {"Worker": REMOVE}, VOLCANO),
        (policy(scheduleTimeoutSeconds=900), COSCHEDULING),
        (policy(scheduleTimeoutSeconds=900), {"maxScheduleTimeoutSeconds": 900}),
        (policy(queue="default", priorityClass="high"), VOLCANO),
        (policy(queue="default"), {}),
        ({"metadata.annotations": {ANNOTATION: "team"}}, VOLCANO),
        (KUEUE | SUSPENDED, {}),
        ({"Worker.template.spec.schedulerName": "volcano"}, VOLCANO),
        ({"Worker.template.spec.schedulerName": "default-scheduler"}, {}),
        (BOTH, {}),
        (POD_GROUP, {}),
        (WAIT | SUSPENDED | {"Worker": REMOVE}, {}),
    ],
)
def test_consistent_gang_settings_are_accepted(changes: Json, settings: Json) -> None:
    assert violations("gang", changes, settings=settings) == []


def without(*resources: str) -> Snapshot:
    """A cluster in which these API resources are not installed."""
    return Snapshot([head(not_installed=resources)])


NO_GANGS = without("queues", "podgroups")
NOTHING = Violation(
    POLICY, "has no effect: no gang scheduler is installed", fix="Remove it, or ask for one.", advisory=True
)


OF_KUEUE = Violation(f"{POLICY}.scheduleTimeoutSeconds", "Kueue does not read it", fix="Remove it.", advisory=True)
OF_VOLCANO = Violation(
    QUEUE, "only Volcano reads it", fix="Remove it; Kueue reads kueue.x-k8s.io/queue-name.", advisory=True
)


@pytest.mark.parametrize(
    ("changes", "settings", "view", "expected"),
    [
        (policy(minAvailable=5), {}, NO_GANGS, [NOTHING]),
        (policy(queue="team"), {}, NO_GANGS, [NOTHING]),
        (policy(scheduleTimeoutSeconds=900), {}, NO_GANGS, [NOTHING]),
        (policy(), {}, NO_GANGS, []),
        ({}, {}, NO_GANGS, []),
        (policy(minAvailable=5), {}, without("queues"), []),
        (policy(minAvailable=5), {}, Snapshot([]), []),
        (policy(minAvailable=5), VOLCANO, NO_GANGS, []),
        (policy(minAvailable=5) | BOTH, {}, NO_GANGS, []),
        (policy(queue="team") | KUEUE, {}, NO_GANGS, []),
        (policy(scheduleTimeoutSeconds=60) | KUEUE, {}, NO_GANGS, [OF_KUEUE]),
        (policy(scheduleTimeoutSeconds=60) | KUEUE, {}, Snapshot([]), []),
        (policy(queue="team"), COSCHEDULING, without("queues"), [OF_VOLCANO]),
    ],
)
def test_scheduling_policy_that_no_scheduler_reads_is_a_warning(
    changes: Json, settings: Json, view: Snapshot, expected: list[Violation]
) -> None:
    result = violations("gang", changes, settings=settings, view=view)
    assert result == expected
    assert all(fits_a_warning("gang", each) for each in result)


@pytest.mark.parametrize("settings", [{}, VOLCANO, COSCHEDULING])
@pytest.mark.parametrize(
    ("changes", "message", "fix"),
    [
        (policy(minAvailable=-1), "is -1, must not be negative", "Set it to 5."),
        (policy(minAvailable=6), "6 pods, but the job has 5", "Set it to 5 or fewer."),
        (policy(minAvailable=6) | WAIT, "6 pods, but the job has 5", "Set it to 4 or fewer."),
        (
            policy(minAvailable=5) | WAIT,
            "5 pods, but the launcher waits for 4 workers",
            "Set it to 4 or fewer.",
        ),
        (policy(minAvailable=2) | {"Worker": REMOVE}, "2 pods, but the job has 1", "Set it to 1 or fewer."),
    ],
)
def test_min_available_out_of_range_is_reported(changes: Json, settings: Json, message: str, fix: str) -> None:
    # Without gang scheduling, the operator ignores minAvailable, so the violation is a warning.
    assert violations("gang", changes, settings=settings) == [Violation(MIN, message, fix=fix, advisory=not settings)]


@pytest.mark.parametrize(
    ("changes", "settings", "advisory"),
    [
        (WAIT, VOLCANO, False),
        (WAIT | policy(), {}, True),
    ],
)
def test_unset_min_available_that_blocks_the_launcher_is_reported(
    changes: Json, settings: Json, advisory: bool
) -> None:
    result = violations("gang", changes | {"Worker.replicas": 100}, settings=settings)
    message = "unset means 101, but the launcher waits for workers"
    assert result == [Violation(MIN, message, fix="Set it to 100.", reason=CauseReason.REQUIRED, advisory=advisory)]
    assert fits_a_warning("gang", result[0])


@pytest.mark.parametrize("state", [SUSPENDED, KUEUE, SUSPENDED | KUEUE])
@pytest.mark.parametrize("changes", [{}, policy(minAvailable=5)])
def test_wait_for_workers_of_a_queued_or_suspended_job_is_a_warning(state: Json, changes: Json) -> None:
    assert violations("gang", WAIT | state | changes, settings=VOLCANO) == [VOID]
    assert fits_a_warning("gang", VOID)


def test_launcher_with_a_wait_container_causes_no_warning() -> None:
    waits = {"Launcher.template.spec.initContainers": [{"name": "wait-for-workers", "image": "x"}]}
    assert violations("gang", WAIT | KUEUE | waits) == []


def test_wait_for_workers_of_a_resumed_job_is_a_warning() -> None:
    assert violations("gang", WAIT, settings=VOLCANO, old=WAIT | SUSPENDED) == [VOID]
    assert violations("gang", WAIT, settings=VOLCANO, old=WAIT) != [VOID]


@pytest.mark.parametrize(
    ("changes", "settings", "message", "fix"),
    [
        (policy(scheduleTimeoutSeconds=-5), {}, "is -5, must not be negative", "Use 0 or more."),
        (policy(scheduleTimeoutSeconds=-5), VOLCANO, "is -5, must not be negative", "Use 0 or more."),
        (
            policy(scheduleTimeoutSeconds=901),
            {"maxScheduleTimeoutSeconds": 900},
            "901 seconds, at most 900 allowed",
            "Set it to 900 or less.",
        ),
    ],
)
def test_invalid_schedule_timeout_is_rejected(changes: Json, settings: Json, message: str, fix: str) -> None:
    assert violations("gang", changes, settings=settings) == [Violation(TIMEOUT, message, fix=fix)]


@pytest.mark.parametrize(
    ("changes", "settings", "path", "message", "fix"),
    [
        (policy(minAvailable=0), {}, MIN, "0 turns gang scheduling off", "Set it to 5."),
        (policy(minAvailable=0) | WAIT, VOLCANO, MIN, "0 turns gang scheduling off", "Set it to 4."),
        (policy(scheduleTimeoutSeconds=9), VOLCANO, TIMEOUT, "Volcano does not read it", "Remove it."),
        (policy(queue="q") | KUEUE, {}, QUEUE, "Kueue queues the job too", "Remove one of the two."),
        (
            {"metadata.annotations": {ANNOTATION: "q"}} | KUEUE,
            VOLCANO,
            f"metadata.annotations[{ANNOTATION}]",
            "Kueue queues the job too",
            "Remove one of the two.",
        ),
        (
            {"Launcher.template.spec.schedulerName": "default-scheduler"},
            VOLCANO,
            LAUNCHER_SCHEDULER,
            "the operator replaces it",
            "Remove it.",
        ),
    ],
)
def test_setting_without_effect_is_a_warning(changes: Json, settings: Json, path: str, message: str, fix: str) -> None:
    result = violations("gang", changes, settings=settings)
    assert result == [Violation(path, message, fix=fix, advisory=True)]
    assert fits_a_warning("gang", result[0])


@pytest.mark.parametrize(
    ("role", "scheduler", "other_role"),
    [("Worker", "volcano", "Launcher"), ("Launcher", "volcano", "Worker")],
)
def test_scheduler_named_for_only_one_role_is_a_warning(role: str, scheduler: str, other_role: str) -> None:
    """Without gang scheduling, the pods of the other role go to the default scheduler."""
    changes = {f"{role}.template.spec.schedulerName": scheduler}
    result = violations("gang", changes)
    path = f"spec.mpiReplicaSpecs[{other_role}].template.spec.schedulerName"
    message = f"is not the {role.lower()}'s"
    assert result == [Violation(path, message, fix="Set it to volcano.", advisory=True)]
    assert fits_a_warning("gang", result[0])
    fixed = changes | {f"{other_role}.template.spec.schedulerName": scheduler}
    assert violations("gang", fixed) == []


def test_different_schedulers_of_the_roles_are_a_warning() -> None:
    changes = {"Worker.template.spec.schedulerName": "a", "Launcher.template.spec.schedulerName": "b"}
    assert [each.fix for each in violations("gang", changes)] == ["Set it to a."]


@pytest.mark.parametrize(
    ("changes", "settings", "message", "fix"),
    [
        ({}, VOLCANO, "Volcano does not read it", "Remove it."),
        ({}, COSCHEDULING, "the operator replaces it", "Remove it."),
        (KUEUE, {}, "Kueue queues the job too", "Remove one of the two."),
        (policy(queue="q"), {}, "Volcano queues the job too", "Remove one of the two."),
    ],
)
def test_pod_group_label_next_to_another_scheduler_or_queue_is_a_warning(
    changes: Json, settings: Json, message: str, fix: str
) -> None:
    path = f"spec.mpiReplicaSpecs[Worker].template.metadata.labels[{GROUP_LABEL}]"
    assert violations("gang", POD_GROUP | changes, settings=settings) == [
        Violation(path, message, fix=fix, advisory=True)
    ]


@pytest.mark.parametrize("settings", [{"scheduler": "Volcano!"}])
def test_invalid_settings_are_rejected(settings: Json) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(settings)
