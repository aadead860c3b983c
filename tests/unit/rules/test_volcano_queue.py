from typing import Any

import pytest

from tests.support.jobs import REMOVE
from tests.support.kueue_objects import priority_class
from tests.support.rule_checks import fits_a_warning, found, violations
from tests.support.volcano_objects import Json, queue
from webhook.cluster.resources.volcano_queues import VOLCANO_QUEUES
from webhook.cluster.snapshot import Snapshot
from webhook.kit.settings import Action
from webhook.rules import REGISTRY, CauseReason, Degree, Violation

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


def said(changes: Json, *objects: Json, settings: Json = ON, old: Json | None = None) -> list[Violation]:
    """The violations of the job with four workers of two GPUs each. Violations that only warn are complete."""
    result = violations(ID, changes, settings=settings, view=Snapshot([*OTHERS, *objects]), old=old)
    assert all(fits_a_warning(ID, violation) for violation in result if violation.advisory and not violation.degree)
    return result


@pytest.mark.parametrize(
    ("changes", "objects"),
    [
        pytest.param({}, [], id="the default queue"),
        pytest.param(TEAM, [queue("team")], id="no bound"),
        pytest.param(ANNOTATED, [queue("team")], id="by annotation"),
        pytest.param(TEAM, [queue("team", {GPU: 8, "cpu": 65, "memory": "257Gi"})], id="just enough"),
        pytest.param(TEAM, [queue("team", {"cpu": 0, "memory": "0", "pods": 1})], id="nothing is no bound"),
        pytest.param(TEAM, [queue("team", {"count/pods": 1, "example.com/x": 0})], id="what it does not ask for"),
        pytest.param(TEAM, [queue("team", {"cpu": "64999500u"})], id="cpu counts in whole thousandths"),
        pytest.param(TEAM, [queue("team", {"memory": "275951648767999m"})], id="memory counts in whole bytes"),
        pytest.param(policy(queue="team", minResources={"gpu": 8}), [queue("team", {"gpu": 1})], id="no resource"),
        pytest.param(TEAM, [queue("team", parent="root")], id="below root"),
        pytest.param(TEAM, [queue("team", parent="gone")], id="below nothing that is known"),
        pytest.param(TEAM | policy(queue="team", minAvailable=0), [queue("team", {GPU: 1})], id="no gang"),
        pytest.param(policy(queue="team", minResources={GPU: 1}), [queue("team", {GPU: 1})], id="less by hand"),
        pytest.param({"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"} | TEAM, [], id="elsewhere"),
    ],
)
def test_accepted(changes: Json, objects: list[Json]) -> None:
    assert said(changes, *objects) == []


@pytest.mark.parametrize("settings", [{}, ON, TREE])
@pytest.mark.parametrize("changes", [{}, TEAM, ANNOTATED])
def test_unknown_queue_is_accepted(changes: Json, settings: Json) -> None:
    assert violations(ID, changes, settings=settings) == []
    assert violations(ID, changes, settings=settings, view=Snapshot([])) == []


def test_a_job_that_names_no_queue_is_not_volcanos_where_gangs_are_off() -> None:
    assert said({}, queue("default", state="Closed"), settings={}) == []


@pytest.mark.parametrize(
    ("changes", "path"), [(TEAM, FIELD), (ANNOTATED, ANNOTATION), (ANNOTATED | policy(queue="team"), FIELD)]
)
def test_absent(changes: Json, path: str) -> None:
    reason = CauseReason.NOT_SUPPORTED
    message = 'queue "team" does not exist'
    other = "Name an existing queue."
    assert said(changes) == [Violation(path, message, fix=other, reason=reason)]
    assert said(changes, queue("team-a")) == [Violation(path, message, fix="Use team-a.", reason=reason)]


def test_the_queue_that_was_probably_meant_is_too_small() -> None:
    """Otherwise the user would learn this only from the next attempt."""
    absent, small = said(TEAM, queue("team-a", {GPU: 7}))
    assert (absent.path, absent.fix) == (FIELD, "Use team-a.")
    assert small.message == f'needs 8 {GPU}, queue "team-a" can hold 7'
    assert (small.path, small.fix, small.advisory) == (WORKERS, "Reduce worker count to 3.", False)


def test_no_default_queue() -> None:
    result = violations(ID, settings=ON, view=Snapshot([queue("team")]))
    assert found(result) == [f'{FIELD}: queue "default" does not exist']


@pytest.mark.parametrize(
    ("name", "meant"), [("Team", "team"), ("a_b", "a-b"), ("-a", "a"), ("x" * 254, "x" * 253)], ids=range(4)
)
def test_no_name_of_a_queue(name: str, meant: str) -> None:
    (fault,) = violations(ID, policy(queue=name), settings=ON)
    assert not fault.advisory
    assert fault.path == FIELD
    assert fault.fix == f"Write {meant}."


@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_closed(state: str) -> None:
    assert said(TEAM, queue("team", state=state)) == [
        Violation(
            FIELD,
            f'queue "team" is {state}',
            fix="Use default.",
            reason=CauseReason.NOT_SUPPORTED,
        )
    ]


def test_closed_with_others() -> None:
    others = [queue("b"), queue("a"), queue("leaf", parent="a"), queue("shut", state="Closed"), queue("new", state="")]
    (fault,) = said(TEAM, queue("team", state="Closed"), *others)
    assert fault.fix == "Use b or default or leaf."


@pytest.mark.parametrize("state", ["", "Unknown"])
def test_not_open_yet(state: str) -> None:
    expected = Violation(FIELD, 'queue "team" is not open yet', fix="It waits.", advisory=True)
    assert said(TEAM, queue("team", state=state)) == [expected]


@pytest.mark.parametrize(
    ("below", "fix"),
    [(["b"], "Use b."), (["c", "b"], "Use one of b, c."), (["e", "d", "c", "b"], "Use one of b, c, d.")],
)
def test_no_leaf(below: list[str], fix: str) -> None:
    objects = [queue("team"), *(queue(name, parent="team") for name in below)]
    message = 'queue "team" has others below it'
    (certain,) = said(TEAM, *objects, settings=TREE)
    assert (certain.path, certain.message, certain.fix, certain.advisory) == (FIELD, message, fix, False)
    assert found(said(TEAM, *objects)) == [f"(advice) {FIELD}: {message}"], "no hierarchy, as far as is known"


def test_root_queue_is_not_a_leaf() -> None:
    """A queue that names no other above it is below root."""
    (fault,) = said(policy(queue="root"), settings=TREE)
    assert fault.fix == "Use default."


@pytest.mark.parametrize(
    ("changes", "capability", "message", "fix"),
    [
        ({}, {GPU: 7}, f'needs 8 {GPU}, queue "team" can hold 7', "Reduce worker count to 3."),
        ({}, {GPU: 0}, f'needs 8 {GPU}, queue "team" can hold 0', "Request less."),
        ({}, {"cpu": "64500m"}, 'needs 65 cpu, queue "team" can hold 64500m', "Reduce worker count to 3."),
        (
            {},
            {"memory": "200Gi"},
            'needs 257Gi memory, queue "team" can hold 200Gi',
            "Reduce worker count to 3.",
        ),
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
def test_more_than_it_can_hold(changes: Json, capability: Json, message: str, fix: str) -> None:
    (fault,) = said(policy(queue="team", **changes), queue("team", capability))
    assert (fault.path, fault.message, fault.fix) == (WORKERS, message, fix)
    assert not fault.advisory
    assert fault.degree is not None


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"spec.launcherCreationPolicy": "WaitForWorkersReady"}, "Reduce worker count to 3 and minAvailable to 3."),
        ({}, "Reduce worker count to 3."),
    ],
)
def test_a_launcher_that_waits_is_not_in_the_gang(changes: Json, fix: str) -> None:
    """The rule `gang` also requires a minAvailable, for the present number of workers."""
    (fault,) = said(TEAM | changes, queue("team", {GPU: 7}))
    assert fault.fix == fix


def test_by_hand() -> None:
    (fault,) = said(policy(queue="team", minResources={GPU: "9"}), queue("team", {GPU: 8}))
    assert fault.path == f"{POLICY}.minResources"
    assert fault.message == f'needs 9 {GPU}, queue "team" can hold 8'
    assert fault.fix == "Request less."


def test_only_what_the_operator_counts() -> None:
    """Containers' requests, else their limits: no init container, no overhead, nothing by default."""
    spec = "Worker.template.spec"
    changes = {
        **TEAM,
        f"{spec}.initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "100"}}}],
        f"{spec}.overhead": {"cpu": "10"},
        f"{spec}.containers.0.resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "16", GPU: 2}},
    }
    assert said(changes, queue("team", {"cpu": 9, GPU: 8})) == []
    assert [fault.message for fault in said(changes, queue("team", {"cpu": 8}))] == [
        'needs 9 cpu, queue "team" can hold 8'
    ]


@pytest.mark.parametrize(
    ("launcher", "worker", "needs"),
    [
        (None, None, "5"),  # two workers and the launcher
        ("high", None, "5"),
        (None, "high", "10"),  # four workers, and the launcher twice, as the operator counts it
        ("gone", "gone", "5"),
    ],
)
def test_a_gang_that_is_smaller_than_the_job(launcher: str | None, worker: str | None, needs: str) -> None:
    changes = {
        **policy(queue="team", minAvailable=3),
        "Launcher.template.spec.priorityClassName": launcher,
        "Worker.template.spec.priorityClassName": worker,
        "Worker.template.spec.containers.0.resources": {"limits": {"cpu": 2}},
    }
    high = {**priority_class("high"), "value": 10}
    (fault,) = said(changes, queue("team", {"cpu": 1}), high)
    assert fault.message == f'needs {needs} cpu, queue "team" can hold 1'


def test_a_gang_of_which_the_order_is_not_known() -> None:
    changes = {**policy(queue="team", minAvailable=3), "Worker.template.spec.priorityClassName": "high"}
    assert said(changes, queue("team", {"cpu": 1})) == []


def test_above() -> None:
    objects = [
        queue("team", {GPU: 8}, parent="dept"),
        queue("dept", {GPU: 6}, parent="root"),
        queue("x", parent="root"),
    ]
    message = f'needs 8 {GPU}, queue "dept" can hold 6'
    (certain,) = said(TEAM, *objects, settings=TREE)
    assert (certain.message, certain.advisory) == (message, False)
    assert certain.fix == "Reduce worker count to 3."
    (advice,) = said(TEAM, *objects)
    assert (advice.message, advice.advisory) == (message, True)


def test_queues_above_each_other() -> None:
    objects = [queue("team", parent="a"), queue("a", {GPU: 1}, parent="team")]
    leaf, capability = said(TEAM, *objects, settings=TREE)
    assert "has others below it" in leaf.message
    assert capability.message == f'needs 8 {GPU}, queue "a" can hold 1'


def test_a_queue_that_is_above_itself_has_no_others_below() -> None:
    assert said(TEAM, queue("team", parent="team"), settings=TREE) == []


def test_it_waits() -> None:
    full = queue("team", {GPU: 16}, allocated={GPU: "10", "cpu": "900"})
    expected = Violation(
        WORKERS,
        f'needs 8 {GPU}, queue "team" has 6 free',
        fix="It waits.",
        reason=CauseReason.FORBIDDEN,
        advisory=True,
    )
    assert said(TEAM, full) == [expected]
    assert said(TEAM, full, old=TEAM) == [], "what is in use may be its own"
    assert said(TEAM, full, old=TEAM | SUSPENDED) == [expected]
    above = [queue("team", parent="dept"), queue("dept", {GPU: 16}, parent="root", allocated={GPU: "10"})]
    assert said(TEAM, *above) == []
    assert [fault.message for fault in said(TEAM, *above, settings=TREE)] == [f'needs 8 {GPU}, queue "dept" has 6 free']


@pytest.mark.parametrize("objects", [[], [queue("team", state="Closed")], [queue("team", {GPU: 1})]])
def test_only_a_warning(objects: list[Json]) -> None:
    """The verdict is uncertain for a suspended job, and where the operator may not create a PodGroup."""
    (refused,) = said(TEAM, *objects)
    (later,) = said(TEAM | SUSPENDED, *objects)
    (perhaps,) = said(TEAM, *objects, settings={})
    assert (refused.advisory, later.advisory, perhaps.advisory) == (False, True, True)
    assert refused.message == later.message == perhaps.message


def test_it_refuses() -> None:
    assert REGISTRY[ID].settings().action is Action.DENY


def test_a_degree_for_each_queue() -> None:
    (fault,) = said(TEAM, queue("team", {GPU: 7, "cpu": 64}))
    assert fault.degree == Degree("team", {GPU: 10**9, "cpu": 10**9})


def test_workers_alone_and_launcher_alone() -> None:
    alone = {**TEAM, "Worker": REMOVE}
    (fault,) = said(alone, queue("team", {"cpu": "500m"}))
    assert fault.path == "spec.mpiReplicaSpecs[Launcher]"
    assert said(alone, queue("team", {"cpu": "1"})) == []


def test_queue_records_have_only_relevant_fields() -> None:
    whole = Snapshot([queue("team", {"cpu": 1}, parent="dept", allocated={"cpu": "1"})]).all(VOLCANO_QUEUES)
    trimmed = VOLCANO_QUEUES.trim(queue("team", {"cpu": 1}, parent="dept", allocated={"cpu": "1"}))
    assert Snapshot([trimmed]).all(VOLCANO_QUEUES) == whole
    assert set(trimmed["spec"]) == {"parent", "capability"}
