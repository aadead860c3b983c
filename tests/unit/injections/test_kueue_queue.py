"""The injection `kueue-queue` queues a job only if Kueue will certainly start the job."""

import itertools
import json
from typing import Any

import pytest

from tests.support.injecting import Example, inject, mpijob, mutate, only, operations_of, pod_spec, policy_of
from tests.support.jobs import request
from tests.support.kueue_objects import (
    CONFIG,
    Json,
    cluster_queue,
    config,
    local_queue,
    manifest,
    namespace,
    priority_class,
    workload_priority_class,
)
from tests.support.rule_checks import decide
from tests.support.snapshots import head
from webhook.admission import pipelines
from webhook.admission.mutate.updates import LAST_APPLIED
from webhook.api.annotations import SKIP
from webhook.cluster.snapshot import Snapshot

ID = "kueue-queue"
KINDS = ("namespaces", "clusterqueues", "localqueues", "kueue-configmaps")
LABEL = "kueue.x-k8s.io/queue-name"
TEAM = namespace("team")
SELECTOR = "managedJobsNamespaceSelector: {matchLabels: {kueue: 'yes'}}\n"
NO_MPIJOBS = CONFIG.replace("kubeflow.org/mpijob", "pod")
EVERY_JOB = "manageJobsWithoutQueueName: true\n"
CLUSTER_QUEUE = cluster_queue("gpus")
NOT_MANAGED = "Kueue does not manage this namespace"
UNCERTAIN = "it is not known whether it takes jobs"
STOPPED = "LocalQueue training is stopped (Hold)."
NOT_KNOWN = "it is not known whether Kueue manages this namespace"


def queue(name: str = "training", behind: str = "gpus", **fields: Any) -> Json:
    return local_queue(name, behind, namespace="team", **fields)


MANAGED = [config(), TEAM, CLUSTER_QUEUE]
ONE_QUEUE = [*MANAGED, queue()]
EXAMPLE = Example(job=mpijob(), view=Snapshot(ONE_QUEUE))


def requesting(name: str, **job: Any) -> Json:
    return mpijob(metadata={"annotations": {"training.openshift.io/queue": name}}, **job)


def injected(job: Json, *objects: Json, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    """The injected labels and `suspend` of the job, and the notes."""
    return inject(ID, job, view=Snapshot(objects), **settings)


def both(name: str) -> dict[str, Any]:
    """The injected fields of a job without labels and runPolicy."""
    return {"/metadata/labels": {LABEL: name}, "/spec/runPolicy": {"suspend": True}}


def note(name: str) -> list[str]:
    return [f"put into queue {name}, which starts the job when there is room"]


@pytest.mark.parametrize(
    ("job", "objects", "settings", "name"),
    [
        pytest.param(mpijob(), [queue()], {}, "training", id="the only queue"),
        pytest.param(mpijob(), [queue(), queue("default")], {}, "default", id="the default queue"),
        pytest.param(mpijob(), [queue(), queue("other")], {"queue": "other"}, "other", id="the policy's queue"),
        pytest.param(mpijob(), [queue(), queue("default")], {"queue": "training"}, "training", id="policy first"),
        pytest.param(requesting("other"), [queue(), queue("other")], {"queue": "training"}, "other", id="annotation"),
    ],
)
def test_queue_is_chosen_from_policy_and_namespace(
    job: Json, objects: list[Json], settings: dict[str, Any], name: str
) -> None:
    assert injected(job, *MANAGED, *objects, **settings) == (both(name), note(name))


REQUESTED = requesting("training")
NOT_IN = "not in queue training: "
LONG = "x" * 64
SUSPENDED = {"suspend": True}
ELSEWHERE = {"managedBy": "kueue.x-k8s.io/multikueue"}
VOLCANO = [{"run_policy": {"schedulingPolicy": {"queue": "volcano"}}},
           {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "volcano"}}}]  # fmt: skip


def labelled(name: str, **annotations: str) -> Json:
    keys = {f"training.openshift.io/{key}": value for key, value in annotations.items()}
    return mpijob(metadata={"labels": {LABEL: name}, "annotations": keys})


@pytest.mark.parametrize(
    ("job", "objects", "settings"),
    [
        pytest.param(mpijob(), [*MANAGED], {}, id="LocalQueues unknown"),
        pytest.param(mpijob(), [*MANAGED, local_queue("training", "gpus", namespace="b")], {}, id="no LocalQueue here"),
        pytest.param(mpijob(), [*MANAGED, queue(), queue("other")], {}, id="two LocalQueues to choose from"),
        pytest.param(mpijob(), [config(SELECTOR), *ONE_QUEUE[1:]], {}, id="namespace not managed"),
        pytest.param(mpijob(), [*MANAGED, queue("default", stopPolicy="Hold")], {}, id="Kueue itself queues the job"),
        *(pytest.param(labelled(own), ONE_QUEUE, {}, id=f"the user's {own}") for own in ("other", "training", "")),
        pytest.param(requesting(""), [*ONE_QUEUE, queue("default")], {"queue": "training"}, id="empty annotation"),
        pytest.param(labelled("training", queue="training"), ONE_QUEUE, {}, id="already injected"),
        *(pytest.param(mpijob(**fields), ONE_QUEUE, {}, id="in a queue of Volcano") for fields in VOLCANO),
        pytest.param(mpijob(run_policy=ELSEWHERE), ONE_QUEUE, {}, id="another controller"),
    ],
)
def test_job_is_unchanged_if_it_needs_no_queue_or_no_queue_is_certain(
    job: Json, objects: list[Json], settings: dict[str, Any]
) -> None:
    assert injected(job, *objects, **settings) == ({}, [])


NO_EFFECT = f'training.openshift.io/queue "training" has no effect on a job with the label {LABEL}'
OTHER_CONTROLLER = "spec.runPolicy.managedBy names another controller"
NO_NAME = 'training.openshift.io/queue "{}" is not a valid name of a queue'


@pytest.mark.parametrize(
    ("job", "objects", "reason"),
    [
        (mpijob(), [*MANAGED, queue(stopPolicy="Hold")], f"{NOT_IN}{STOPPED} Ask for a queue."),
        (mpijob(), [*MANAGED, queue(LONG)], f"not in queue {LONG}: {UNCERTAIN}"),
        (REQUESTED, [config(), TEAM, queue()], NOT_IN + UNCERTAIN),
        (REQUESTED, [], NOT_IN + NOT_KNOWN),
        (REQUESTED, ONE_QUEUE[1:], NOT_IN + NOT_KNOWN),
        (REQUESTED, [config(), CLUSTER_QUEUE, queue()], NOT_IN + NOT_KNOWN),
        (REQUESTED, [config(SELECTOR), *ONE_QUEUE[1:]], NOT_IN + NOT_MANAGED),
        (REQUESTED, [config("", NO_MPIJOBS), *ONE_QUEUE[1:]], f"{NOT_IN}Kueue does not manage MPIJobs here"),
        (REQUESTED, MANAGED, NOT_IN + UNCERTAIN),
        (requesting("a b"), ONE_QUEUE, NO_NAME.format("a b")),
        (requesting(LONG), ONE_QUEUE, NO_NAME.format("xxxxxxxxx...")),
        (requesting("\x1b[31m"), ONE_QUEUE, NO_NAME.format("?[31m")),
        (requesting("-a"), ONE_QUEUE, NO_NAME.format("-a")),
        (labelled("other", queue="training"), [*ONE_QUEUE, queue("other")], NO_EFFECT),
        (mpijob(run_policy=SUSPENDED), ONE_QUEUE, f"{NOT_IN}spec.runPolicy.suspend is true. Remove it."),
        (requesting("training", run_policy=ELSEWHERE), ONE_QUEUE, f"{NOT_IN}{OTHER_CONTROLLER}"),
    ],
)
def test_job_that_cannot_be_queued_has_a_note_with_the_reason(job: Json, objects: list[Json], reason: str) -> None:
    assert injected(job, *objects) == ({}, [reason])


@pytest.mark.parametrize(
    "fields", [{"run_policy": SUSPENDED}, {"run_policy": {"managedBy": "kubeflow.org/mpi-operator"}}, *VOLCANO]
)
def test_job_gets_the_queue_in_its_annotation(fields: dict[str, Any]) -> None:
    job = mpijob(**fields)
    job["metadata"].setdefault("annotations", {})["training.openshift.io/queue"] = "training"
    added, notes = injected(job, *ONE_QUEUE)
    assert (added["/metadata/labels"], notes) == ({LABEL: "training"}, note("training"))
    assert ("/spec/runPolicy/suspend" in added or "/spec/runPolicy" in added) == (fields != {"run_policy": SUSPENDED})


NO_VOLCANO = head(*KINDS, not_installed=["queues"])
FIELD = "spec.runPolicy.schedulingPolicy.queue"


def with_volcano_queue(name: str) -> Json:
    return mpijob(run_policy={"schedulingPolicy": {"queue": name}})


@pytest.mark.parametrize(
    ("name", "objects", "settings", "queue_name", "notes_expected"),
    [
        ("training", [], {}, "training", note("training")),
        ("other", [queue("other")], {}, "other", note("other")),
        ("other", [queue("other")], {"queue": "training"}, "other", note("other")),
        ("gone", [], {}, "training", [*note("training"), f'in queue training: there is no queue "gone" ({FIELD})']),
        ("a b", [], {}, "training", [*note("training"), f'in queue training: there is no queue "a b" ({FIELD})']),
        (
            "gone",
            [queue("other")],
            {},
            "",
            ["not in queue gone: LocalQueue gone doesn't exist. Use other or training."],
        ),
        ("off", [queue("off", stopPolicy="Hold")], {}, "off", ["put into queue off"]),
    ],
)
def test_volcanos_field_selects_a_local_queue_if_volcano_is_not_installed(
    name: str, objects: list[Json], settings: dict[str, Any], queue_name: str, notes_expected: list[str]
) -> None:
    added, notes = injected(with_volcano_queue(name), NO_VOLCANO, *ONE_QUEUE, *objects, **settings)
    assert (added.get("/metadata/labels"), notes) == ({LABEL: queue_name} if queue_name else None, notes_expected)


def test_volcanos_field_is_ignored_with_the_annotation_or_without_kueue() -> None:
    assert injected(with_volcano_queue("training"), NO_VOLCANO, config(SELECTOR), *ONE_QUEUE[1:]) == ({}, [])
    job = with_volcano_queue("gone")
    job["metadata"].setdefault("annotations", {})["training.openshift.io/queue"] = "training"
    assert injected(job, NO_VOLCANO, *ONE_QUEUE)[1] == note("training")
    job["metadata"]["annotations"]["training.openshift.io/queue"] = ""
    assert injected(job, NO_VOLCANO, *ONE_QUEUE) == ({}, [])


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([queue(stopPolicy="Hold"), queue("a")], f"{STOPPED} Use a."),
        ([queue(inactive="ClusterQueueIsInactive")], UNCERTAIN),
        ([manifest("LocalQueue", "training", {"clusterQueue": "gpus"}, namespace="team")], UNCERTAIN),
    ],
)
def test_queue_that_cannot_be_used_is_reported(objects: list[Json], reason: str) -> None:
    notes = [f"not in queue training: {reason}"]
    assert injected(requesting("training"), *MANAGED, *objects) == ({}, notes)
    assert injected(mpijob(), *MANAGED, *objects, queue="training") == ({}, notes)
    decision = mutate(requesting("training"), only(ID), view=Snapshot([*MANAGED, *objects]))
    assert decision.warnings == [f"{ID}: {notes[0]}"], "the warning is not shortened"


def test_queue_is_in_the_summary_of_injections() -> None:
    (line,) = mutate(mpijob(), view=Snapshot(ONE_QUEUE)).warnings
    assert line.startswith("injected: ")
    assert "kueue-queue training," in line


def test_defaults_of_the_api_server_are_not_choices_of_the_user() -> None:
    added, notes = injected(mpijob(run_policy={"suspend": False}), *ONE_QUEUE)
    assert added == {"/metadata/labels": {LABEL: "training"}, "/spec/runPolicy/suspend": True}
    assert notes == note("training")
    added, _ = injected(mpijob(run_policy={"managedBy": "kubeflow.org/mpi-operator"}), *ONE_QUEUE)
    assert added == {"/metadata/labels": {LABEL: "training"}, "/spec/runPolicy/suspend": True}


def test_suspended_job_is_queued_if_kueue_suspends_every_job() -> None:
    job = mpijob(run_policy={"suspend": True})
    labelled = {"/metadata/labels": {LABEL: "training"}}
    assert injected(job, config(EVERY_JOB), *ONE_QUEUE[1:]) == (labelled, note("training"))
    default = {"/metadata/labels": {LABEL: "default"}}
    assert injected(job, *MANAGED, queue("default")) == (default, note("default"))
    # If this feature gate is off, Kueue does not suspend the jobs of this namespace that have no queue.
    gate = "featureGates: {ManagedJobsNamespaceSelectorAlwaysRespected: false}\n"
    assert injected(job, config(EVERY_JOB + SELECTOR + gate), *ONE_QUEUE[1:])[0] == {}


OF_LAUNCHER = {"launcher": {"spec": pod_spec(priorityClassName="p")}}
PRIORITIES = {
    "launcher": (OF_LAUNCHER, priority_class, "PriorityClass"),
    "scheduling policy": (
        {"run_policy": {"schedulingPolicy": {"priorityClass": "p"}}},
        priority_class,
        "PriorityClass",
    ),
    "label instead of the launcher": (
        {**OF_LAUNCHER, "metadata": {"labels": {"kueue.x-k8s.io/priority-class": "p"}}},
        workload_priority_class,
        "WorkloadPriorityClass",
    ),
}


@pytest.mark.parametrize(("job", "manifest", "kind"), PRIORITIES.values(), ids=PRIORITIES)
def test_missing_priority_class_is_reported(job: Json, manifest: Any, kind: str) -> None:
    for objects, reason in (
        ([manifest("p")], ""),
        ([manifest("q")], f'its {kind} "p" does not exist'),
        ([], f'it is not known whether its {kind} "p" exists'),
    ):
        added, notes = injected(mpijob(**job), *ONE_QUEUE, *objects)
        assert notes == ([f"not in queue training: {reason}"] if reason else note("training"))
        assert bool(added) == (not reason)


def test_other_labels_of_the_user_stay() -> None:
    job = mpijob(metadata={"labels": {"app": "train"}}, run_policy={"cleanPodPolicy": "All"})
    added, _ = injected(job, *ONE_QUEUE)
    assert added == {"/metadata/labels/kueue.x-k8s.io~1queue-name": "training", "/spec/runPolicy/suspend": True}


CREATED = mutate(mpijob(), only(ID), view=Snapshot(ONE_QUEUE)).document or {}
ADMITTED = {**CREATED, "spec": {**CREATED["spec"], "runPolicy": {"suspend": False}}}


class TestUpdate:
    """The injection never suspends a job that Kueue has started."""

    @staticmethod
    def updated(new: Json, old: Json, *objects: Json, username: str = "alice") -> list[tuple[str, Any]]:
        sent = request(new, old=old, operation="UPDATE", username=username, namespace="team")
        decision = pipelines.mutate(sent, policy=only(ID), view=Snapshot(objects))
        return operations_of(decision)

    @pytest.mark.parametrize("username", ["alice", "system:serviceaccount:kueue:kueue"])
    def test_start_by_kueue_is_not_undone(self, username: str) -> None:
        assert self.updated(ADMITTED, CREATED, *ONE_QUEUE, username=username) == []

    def test_stop_by_kueue_is_not_undone(self) -> None:
        assert self.updated(CREATED, ADMITTED, *ONE_QUEUE, username="system:serviceaccount:kueue:kueue") == []

    @pytest.mark.parametrize("policy", [None, {}, {"suspend": False}])
    def test_update_without_label_restores_the_queue_and_suspends_only_a_waiting_job(self, policy: Json | None) -> None:
        label = ("/metadata/labels", {LABEL: "training"})
        suspend = ("/spec/runPolicy", {"suspend": True}) if policy is None else ("/spec/runPolicy/suspend", True)
        assert self.updated(mpijob(run_policy=policy), CREATED, *ONE_QUEUE) == [label, suspend]
        assert self.updated(mpijob(run_policy=policy), ADMITTED, *ONE_QUEUE) == [label]

    def test_update_of_a_job_without_a_queue_adds_nothing(self) -> None:
        for suspend in (None, True, False):
            old = mpijob(run_policy={"suspend": suspend})
            assert self.updated(mpijob(), old, *ONE_QUEUE) == []

    @pytest.mark.parametrize(("old", "new"), list(itertools.product((None, True, False), repeat=2)))
    def test_update_never_suspends_a_job_that_was_not_suspended(self, old: bool | None, new: bool | None) -> None:
        for label in ({}, {LABEL: "training"}):
            stored = {**CREATED, "spec": {**CREATED["spec"], "runPolicy": {"suspend": old}}}
            sent = mpijob(run_policy={"suspend": new}, metadata={"labels": label})
            patch = dict(self.updated(sent, stored, *ONE_QUEUE))
            assert "/spec/runPolicy" not in patch
            assert "/spec/runPolicy/suspend" not in patch or (old is True and (new is None or (not new and not label)))


SECOND = [*ONE_QUEUE, queue("second")]


def updated(new: Json, *objects: Json, runs: bool = False) -> tuple[Any, Any, list[str]]:
    """Update a job in the queue `training` to `new`, and return its label, `suspend` and warnings."""
    stored: Any = mutate(requesting("training"), only(ID), view=Snapshot(objects)).document
    stored["spec"]["runPolicy"]["suspend"] = not runs
    new["spec"].setdefault("runPolicy", {})["suspend"] = False  # the API server's default
    view = Snapshot(objects)
    decision = mutate(new, only(ID), "UPDATE", view=view, stored=stored)
    document: Any = decision.document
    again = mutate(new, only(ID), "UPDATE", view=view, stored=document)
    assert (again.document, again.warnings) == (document, [])
    label, suspend = document["metadata"].get("labels", {}).get(LABEL), document["spec"]["runPolicy"]["suspend"]
    return label, suspend, [warning.removeprefix(f"{ID}: ") for warning in decision.warnings]


STAYS = "stays in queue training: "
MOVED = "moved to queue {}, which starts the job when there is room"
INVALID = 'training.openshift.io/queue "A_b-" is not a valid name of a queue'
NEEDED = "a waiting job needs a queue. Delete the job and submit it again."


@pytest.mark.parametrize(
    ("new", "objects", "queue", "warning"),
    [
        (requesting("training"), [], "training", ""),
        (requesting("second"), [], "second", MOVED.format("second")),
        (requesting("gone"), [], "training", f"{STAYS}LocalQueue gone doesn't exist. Use second or training."),
        (requesting("A_b-"), [], "training", STAYS + INVALID),
        (requesting(""), [], "training", STAYS + NEEDED),
        (mpijob(), [], "training", ""),  # the namespace has two queues, so the job keeps its queue
        (mpijob(), [queue("default")], "default", MOVED.format("default")),
    ],
)
def test_waiting_job_moves_to_the_requested_queue_or_stays_with_a_warning(
    new: Json, objects: list[Json], queue: str, warning: str
) -> None:
    assert updated(new, *SECOND, *objects) == (queue, True, [warning] if warning else [])


@pytest.mark.parametrize("name", ["second", "gone", "A_b-", ""])
def test_running_job_keeps_its_queue(name: str) -> None:
    stays = f'stays in queue training, not "{name}": to move a running job, delete it and submit it again'
    assert updated(requesting(name), *SECOND, queue("default"), runs=True) == ("training", False, [stays])


@pytest.mark.parametrize("new", [mpijob(), requesting("training")])
def test_unchanged_queue_of_a_running_job_is_not_reported(new: Json) -> None:
    assert updated(new, *SECOND, queue("default"), runs=True) == ("training", False, [])


@pytest.mark.parametrize("skip", [{}, {SKIP: ID}])
@pytest.mark.parametrize("labels", [{}, {LABEL: ""}], ids=["removed", "emptied"])
def test_suspended_job_keeps_its_queue(labels: dict[str, str], skip: dict[str, str]) -> None:
    """Without the queue the job would never be resumed. The job keeps the queue even if the injection is now off."""
    stored = mpijob(metadata={"labels": {LABEL: "training"}}, run_policy={"suspend": True})
    stored["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(stored)}
    new = mpijob(metadata={"labels": labels, "annotations": skip}, run_policy={"suspend": True})
    for policy in (only(ID), policy_of({ID: {"enabled": False}})):
        document: Any = mutate(new, policy, "UPDATE", view=Snapshot(SECOND), stored=stored).document
        assert document["metadata"]["labels"][LABEL] == "training"
        assert document["spec"]["runPolicy"]["suspend"] is True


REQUIRED = f"injections: {{{ID}: {{required: deny}}}}"
EVASIONS = {
    "annotation": mpijob(metadata={"annotations": {"training.openshift.io/queue": ""}}),
    "label": mpijob(metadata={"labels": {LABEL: ""}}),
    "Volcano": mpijob(metadata={"annotations": {"scheduling.volcano.sh/queue-name": "x"}}),
    "skip": mpijob(metadata={"annotations": {SKIP: ID}}),
    "nothing": mpijob(),
}


@pytest.mark.parametrize("evasion", EVASIONS.values(), ids=EVASIONS)
@pytest.mark.parametrize(
    "stored", [None, mpijob(metadata={"labels": {"a": "b"}}), mpijob(metadata={"labels": {LABEL: "training"}})]
)
def test_required_queue_cannot_be_evaded(evasion: Json, stored: Any) -> None:
    decision = decide(evasion, REQUIRED, old=stored, namespace="team", view=Snapshot(ONE_QUEUE))
    [finding] = [finding for finding in decision.denied if finding.rule == "required-injection"]
    assert finding.violation.path == f"metadata.labels[{LABEL}]"
    assert finding.violation.fix == "Set it to training."


@pytest.mark.parametrize(
    ("job", "objects"),
    [
        (mpijob(metadata={"labels": {LABEL: "training"}}), ONE_QUEUE),
        (mpijob(run_policy={"managedBy": "kueue.x-k8s.io/multikueue"}), ONE_QUEUE),
        (mpijob(), []),
    ],
    ids=["queued", "in another cluster", "Kueue unknown"],
)
def test_job_that_is_queued_or_needs_no_queue_is_accepted(job: Json, objects: list[Json]) -> None:
    decision = decide(job, REQUIRED, namespace="team", view=Snapshot(objects))
    assert "required-injection" not in {finding.rule for finding in decision.denied}
