from typing import Any

import pytest

from tests.support.jobs import REMOVE
from tests.support.kueue_objects import priority_class
from tests.support.rule_checks import as_texts, fits_a_warning, violations
from tests.support.volcano_objects import Json, queue
from webhook.cluster.resources.volcano_queues import VOLCANO_QUEUES
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason, Degree, Violation

ID = "volcano-queue"
POLICY = "spec.runPolicy.schedulingPolicy"
FIELD = f"{POLICY}.queue"
ANNOTATION = "metadata.annotations[scheduling.volcano.sh/queue-name]"
WORKERS = "spec.mpiReplicaSpecs[Worker].replicas"
ON = {"gangScheduling": True}
TREE = {**ON, "hierarchy": True}
GPU = "nvidia.com/gpu"
OTHERS = [queue("default"), queue("root")]


def policy(**fields: Any) -> Json:
    return {POLICY: fields}


TEAM = policy(queue="team")
ANNOTATED = {"metadata.annotations": {"scheduling.volcano.sh/queue-name": "team"}}
SUSPENDED = {"spec.runPolicy.suspend": True}


def reported(changes: Json, *objects: Json, settings: Json = ON, old: Json | None = None) -> list[Violation]:
    """The violations of a job with four workers of two GPUs each. A warning without `degree` must contain the fix."""
    result = violations(ID, changes, settings=settings, view=Snapshot([*OTHERS, *objects]), old=old)
    assert all(fits_a_warning(ID, violation) for violation in result if violation.advisory and not violation.degree)
    return result


@pytest.mark.parametrize(
    ("changes", "objects"),
    [
        pytest.param({}, [], id="the default queue"),
        pytest.param(TEAM, [queue("team")], id="queue without a limit"),
        pytest.param(ANNOTATED, [queue("team")], id="queue named by an annotation"),
        pytest.param(TEAM, [queue("team", {GPU: 8, "cpu": 65, "memory": "257Gi"})], id="just enough"),
        pytest.param(TEAM, [queue("team", {"cpu": 0, "memory": "0", "pods": 1})], id="zero is not a limit"),
        pytest.param(
            TEAM, [queue("team", {"count/pods": 1, "example.com/x": 0})], id="a resource that the job does not request"
        ),
        pytest.param(TEAM, [queue("team", {"cpu": "64999500u"})], id="cpu in whole millicores"),
        pytest.param(TEAM, [queue("team", {"memory": "275951648767999m"})], id="memory in whole bytes"),
        pytest.param(
            policy(queue="team", minResources={"gpu": 8}),
            [queue("team", {"gpu": 1})],
            id="a resource that Kubernetes does not know",
        ),
        pytest.param(TEAM, [queue("team", parent="gone")], id="unknown parent"),
        pytest.param(
            TEAM | policy(queue="team", minAvailable=0), [queue("team", {GPU: 1})], id="no gang: minAvailable 0"
        ),
        pytest.param(
            policy(queue="team", minResources={GPU: 1}),
            [queue("team", {GPU: 1})],
            id="minResources lower than the requests",
        ),
        pytest.param(
            {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"} | TEAM, [], id="job for another cluster"
        ),
    ],
)
def test_job_that_fits_its_queue_is_accepted(changes: Json, objects: list[Json]) -> None:
    assert reported(changes, *objects) == []


@pytest.mark.parametrize("settings", [{}, ON, TREE])
@pytest.mark.parametrize("changes", [{}, TEAM, ANNOTATED])
def test_queue_is_accepted_if_the_queues_of_the_cluster_are_unknown(changes: Json, settings: Json) -> None:
    assert violations(ID, changes, settings=settings) == []
    assert violations(ID, changes, settings=settings, view=Snapshot([])) == []


def test_job_without_a_queue_is_checked_only_with_gang_scheduling() -> None:
    assert reported({}, queue("default", state="Closed"), settings={}) == []


@pytest.mark.parametrize(
    ("changes", "path"), [(TEAM, FIELD), (ANNOTATED, ANNOTATION), (ANNOTATED | policy(queue="team"), FIELD)]
)
def test_missing_queue_is_rejected(changes: Json, path: str) -> None:
    reason = CauseReason.NOT_SUPPORTED
    message = 'queue "team" does not exist'
    assert reported(changes) == [Violation(path, message, fix="Use default.", reason=reason)]
    others = [queue(name) for name in ("x-1", "x-2", "x-3", "x-4")]
    assert reported(changes, *others)[0].fix == "Use default or x-1 or x-2."
    assert reported(changes, queue("team-a")) == [Violation(path, message, fix="Use team-a.", reason=reason)]


def test_capacity_of_the_suggested_queue_is_checked() -> None:
    """Without this check, the user would see the problem only at the next attempt."""
    absent, small = reported(TEAM, queue("team-a", {GPU: 7}))
    assert (absent.path, absent.fix) == (FIELD, "Use team-a.")
    assert small.message == f'needs 8 {GPU}, queue "team-a" can hold 7'
    assert (small.path, small.fix, small.advisory) == (WORKERS, "Reduce worker count to 3.", False)


def test_missing_default_queue_is_rejected() -> None:
    result = violations(ID, settings=ON, view=Snapshot([queue("team")]))
    assert as_texts(result) == [f'{FIELD}: queue "default" does not exist']


@pytest.mark.parametrize(
    ("name", "meant"),
    [("Team", "team"), ("a_b", "a-b"), ("-a", "a"), ("x" * 254, "x" * 253)],
    ids=["upper case", "underscore", "dash first", "too long"],
)
def test_invalid_queue_name_is_rejected(name: str, meant: str) -> None:
    (fault,) = violations(ID, policy(queue=name), settings=ON)
    assert not fault.advisory
    assert fault.path == FIELD
    assert fault.fix == f"Write {meant}."


@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_closed_queue_is_rejected(state: str) -> None:
    assert reported(TEAM, queue("team", state=state)) == [
        Violation(
            FIELD,
            f'queue "team" is {state}',
            fix="Use default.",
            reason=CauseReason.NOT_SUPPORTED,
        )
    ]


def test_fix_for_a_closed_queue_names_the_open_leaf_queues() -> None:
    others = [queue("b"), queue("a"), queue("leaf", parent="a"), queue("shut", state="Closed"), queue("new", state="")]
    (fault,) = reported(TEAM, queue("team", state="Closed"), *others)
    assert fault.fix == "Use b or default or leaf."


@pytest.mark.parametrize("state", ["", "Unknown"])
def test_queue_that_is_not_open_yet_causes_a_warning(state: str) -> None:
    expected = Violation(FIELD, 'queue "team" is not open yet', fix="It waits.", advisory=True)
    assert reported(TEAM, queue("team", state=state)) == [expected]


@pytest.mark.parametrize(
    ("below", "fix"),
    [(["b"], "Use b."), (["c", "b"], "Use one of b, c."), (["e", "d", "c", "b"], "Use one of b, c, d.")],
)
def test_queue_with_other_queues_below_it_is_reported(below: list[str], fix: str) -> None:
    objects = [queue("team"), *(queue(name, parent="team") for name in below)]
    message = 'queue "team" has queues below it'
    (certain,) = reported(TEAM, *objects, settings=TREE)
    assert (certain.path, certain.message, certain.fix, certain.advisory) == (FIELD, message, fix, False)
    assert as_texts(reported(TEAM, *objects)) == [f"(advice) {FIELD}: {message}"], (
        "without the setting hierarchy it is a warning"
    )


def test_root_queue_is_not_a_leaf() -> None:
    """A queue without a parent is below the queue `root`."""
    (fault,) = reported(policy(queue="root"), settings=TREE)
    assert fault.fix == "Use default."


@pytest.mark.parametrize(
    ("changes", "capability", "message", "fix"),
    [
        ({}, {GPU: 7}, f'needs 8 {GPU}, queue "team" can hold 7', "Reduce worker count to 3."),
        ({}, {GPU: 0}, f'needs 8 {GPU}, queue "team" can hold 0', "Request less."),
        ({}, {"cpu": "64500m"}, 'needs 65 cpu, queue "team" can hold 64500m', "Reduce worker count to 3."),
        (
            {},
            {"memory": "200Gi", GPU: 2},
            f'needs 8 {GPU}, queue "team" can hold 2',
            "Reduce worker count to 1.",
        ),
        (
            {"minAvailable": 4},
            {GPU: 5},
            f'needs 6 {GPU}, queue "team" can hold 5',
            "Reduce worker count to 2 and minAvailable to 3.",
        ),
    ],
)
def test_job_above_the_capability_is_rejected(changes: Json, capability: Json, message: str, fix: str) -> None:
    (fault,) = reported(policy(queue="team", **changes), queue("team", capability))
    assert (fault.path, fault.message, fault.fix) == (WORKERS, message, fix)
    assert not fault.advisory
    assert fault.degree is not None


def test_gang_excludes_a_launcher_that_waits_for_workers() -> None:
    """The fix also sets minAvailable, because the rule `gang` requires it."""
    (fault,) = reported(TEAM | {"spec.launcherCreationPolicy": "WaitForWorkersReady"}, queue("team", {GPU: 7}))
    assert fault.fix == "Reduce worker count to 3 and minAvailable to 3."


def test_min_resources_above_the_capability_are_rejected() -> None:
    (fault,) = reported(policy(queue="team", minResources={GPU: "9"}), queue("team", {GPU: 8}))
    assert fault.path == f"{POLICY}.minResources"
    assert fault.message == f'needs 9 {GPU}, queue "team" can hold 8'
    assert fault.fix == "Request less."


def test_only_requests_of_containers_are_added_up() -> None:
    """The operator adds up the requests of containers. If a request is missing, the operator adds the limit instead."""
    spec = "Worker.template.spec"
    changes = {
        **TEAM,
        f"{spec}.initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "100"}}}],
        f"{spec}.overhead": {"cpu": "10"},
        f"{spec}.containers.0.resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "16", GPU: 2}},
    }
    assert reported(changes, queue("team", {"cpu": 9, GPU: 8})) == []
    assert [fault.message for fault in reported(changes, queue("team", {"cpu": 8}))] == [
        'needs 9 cpu, queue "team" can hold 8'
    ]


@pytest.mark.parametrize(
    ("launcher", "worker", "needs"),
    [
        (None, None, "5"),  # two workers and the launcher
        ("high", None, "5"),
    ],
)
def test_requests_of_a_gang_that_is_smaller_than_the_job_are_compared_with_the_queue(
    launcher: str | None, worker: str | None, needs: str
) -> None:
    changes = {
        **policy(queue="team", minAvailable=3),
        "Launcher.template.spec.priorityClassName": launcher,
        "Worker.template.spec.priorityClassName": worker,
        "Worker.template.spec.containers.0.resources": {"limits": {"cpu": 2}},
    }
    high = priority_class("high", value=10)
    (fault,) = reported(changes, queue("team", {"cpu": 1}), high)
    assert fault.message == f'needs {needs} cpu, queue "team" can hold 1'


def test_gang_with_an_unknown_order_of_pods_is_accepted() -> None:
    changes = {**policy(queue="team", minAvailable=3), "Worker.template.spec.priorityClassName": "high"}
    assert reported(changes, queue("team", {"cpu": 1})) == []


def test_parent_queue_that_is_too_small_is_reported() -> None:
    objects = [
        queue("team", {GPU: 8}, parent="dept"),
        queue("dept", {GPU: 6}, parent="root"),
        queue("x", parent="root"),
    ]
    message = f'needs 8 {GPU}, queue "dept" can hold 6'
    (certain,) = reported(TEAM, *objects, settings=TREE)
    assert (certain.message, certain.advisory) == (message, False)
    assert certain.fix == "Reduce worker count to 3."
    (advice,) = reported(TEAM, *objects)
    assert (advice.message, advice.advisory) == (message, True)


def test_queues_in_a_cycle_are_checked() -> None:
    objects = [queue("team", parent="a"), queue("a", {GPU: 1}, parent="team")]
    leaf, capability = reported(TEAM, *objects, settings=TREE)
    assert "has queues below it" in leaf.message
    assert capability.message == f'needs 8 {GPU}, queue "a" can hold 1'


def test_queue_that_is_its_own_parent_is_a_leaf() -> None:
    assert reported(TEAM, queue("team", parent="team"), settings=TREE) == []


def test_queue_without_free_capacity_causes_a_warning() -> None:
    full = queue("team", {GPU: 16}, allocated={GPU: "10", "cpu": "900"})
    expected = Violation(
        WORKERS,
        f'needs 8 {GPU}, queue "team" has 6 free',
        fix="It waits.",
        reason=CauseReason.FORBIDDEN,
        advisory=True,
    )
    assert reported(TEAM, full) == [expected]
    assert reported(TEAM, full, old=TEAM) == [], "the stored job may be using the capacity"
    assert reported(TEAM, full, old=TEAM | SUSPENDED) == [expected]
    above = [queue("team", parent="dept"), queue("dept", {GPU: 16}, parent="root", allocated={GPU: "10"})]
    assert reported(TEAM, *above) == []
    assert [fault.message for fault in reported(TEAM, *above, settings=TREE)] == [
        f'needs 8 {GPU}, queue "dept" has 6 free'
    ]


@pytest.mark.parametrize("objects", [[], [queue("team", state="Closed")], [queue("team", {GPU: 1})]])
def test_uncertain_violation_causes_a_warning(objects: list[Json]) -> None:
    """A violation is uncertain if the job is suspended, or if it is unknown whether the operator creates a PodGroup."""
    (certain,) = reported(TEAM, *objects)
    (later,) = reported(TEAM | SUSPENDED, *objects)
    (perhaps,) = reported(TEAM, *objects, settings={})
    assert (certain.advisory, later.advisory, perhaps.advisory) == (False, True, True)
    assert certain.message == later.message == perhaps.message


def test_degree_has_the_excess_of_each_resource() -> None:
    (fault,) = reported(TEAM, queue("team", {GPU: 7, "cpu": 64}))
    assert fault.degree == Degree("team", {GPU: 10**9, "cpu": 10**9})


def test_job_without_workers_is_reported_at_the_launcher() -> None:
    alone = {**TEAM, "Worker": REMOVE}
    (fault,) = reported(alone, queue("team", {"cpu": "500m"}))
    assert fault.path == "spec.mpiReplicaSpecs[Launcher]"
    assert reported(alone, queue("team", {"cpu": "1"})) == []


def test_queue_records_have_only_relevant_fields() -> None:
    whole = Snapshot([queue("team", {"cpu": 1}, parent="dept", allocated={"cpu": "1"})]).all(VOLCANO_QUEUES)
    trimmed = VOLCANO_QUEUES.trim(queue("team", {"cpu": 1}, parent="dept", allocated={"cpu": "1"}))
    assert Snapshot([trimmed]).all(VOLCANO_QUEUES) == whole
    assert set(trimmed["spec"]) == {"parent", "capability"}
