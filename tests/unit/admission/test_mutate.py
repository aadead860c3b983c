"""The mutating pipeline: the requests that it does not change, and the properties of every patch."""

import copy
import json

import pytest
from hypothesis import example, given

from tests.support.any_job import jobs, mangled_jobs
from tests.support.injecting import (
    DEFAULTS,
    VIEW,
    everything_on,
    examples,
    hold,
    mpijob,
    mutate,
    only,
    policy_of,
    without_list,
)
from tests.support.jobs import request as sent_for
from tests.support.kueue_objects import config
from tests.support.paths import EXAMPLES as EXAMPLES_FOLDER
from tests.support.promises import readable
from tests.support.strategies import COMPLETE, PROPERTY, json_values, replaced
from webhook import injections
from webhook.admission import pipelines
from webhook.admission.pipelines import Policy
from webhook.api import yaml
from webhook.cluster.snapshot import Snapshot
from webhook.injections import Injection
from webhook.kit.settings import InjectionSettings
from webhook.policy.document import CONTROLLERS

EXAMPLES = sorted(EXAMPLES_FOLDER.rglob("*.yaml"))
BUSY = everything_on()


OWNED_WITH_A_LIMIT = {
    "metadata": {"labels": {"training.openshift.io/timeout": "true"}, "ownerReferences": [{"controller": True}]},
    "spec": {"runPolicy": {"activeDeadlineSeconds": 60}},
}


@PROPERTY
@given(jobs())
@example(OWNED_WITH_A_LIMIT)
def test_properties_of_the_patch_hold_for_generated_jobs(job):
    assert readable(json.dumps(job).encode())
    hold(job)
    hold(job, BUSY)


@PROPERTY
@given(mangled_jobs())
def test_properties_of_the_patch_hold_for_jobs_with_arbitrary_json_in_some_fields(job):
    hold(job, BUSY)


@PROPERTY
@given(json_values())
def test_properties_of_the_patch_hold_for_arbitrary_json(value):
    hold(value)
    hold({"spec": {"mpiReplicaSpecs": value}})
    hold({"metadata": {"labels": value, "annotations": value}})


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 2**31, 2**64, 0.5, "", "1", [], {}, [None], [{}], ["x"], {"x": None}, {"Launcher": {}}],
    ids=repr,
)
def test_properties_of_the_patch_hold_for_jobs_with_a_wrong_value_in_any_field(value):
    for _, job in replaced(value):
        hold(job, BUSY)


def test_injections_that_change_a_job_alone_also_change_it_together():
    alone = {injection_id for injection_id in injections.REGISTRY if mutate(COMPLETE, only(injection_id)).patch}
    expected = sorted(alone & {injection.id for injection, _ in DEFAULTS.injections})
    decision = hold(COMPLETE)
    assert sorted(set(decision.authors)) == expected
    annotated = decision.response("u-1").audit_annotations
    assert annotated["injected"] == ",".join(expected)
    assert set(annotated) == {
        "injected",
        *(f"injected.{entry}" for entry in expected if not injections.REGISTRY[entry].quiet),
    }


def test_audit_annotation_names_only_effective_injections():
    off = {injection_id: {"enabled": False} for injection_id in injections.REGISTRY}
    policy = policy_of({**off, "labels": {}, "job-timeout": {}, "tolerations": {}})
    decision = hold(COMPLETE, policy)
    assert decision.document["spec"]["runPolicy"]["activeDeadlineSeconds"] == 259_200
    assert decision.response("u-1").audit_annotations == {
        "injected": "job-timeout,labels",
        "injected.job-timeout": "the job is ended and fails after 72h (259200 s); as annotated",
        "injected.labels": "added training.kubeflow.org/job-type=mpijob",
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_properties_of_the_patch_hold_for_examples(path):
    for document in yaml.load_all(path.read_text()):
        hold(document)
        hold(document, BUSY)


@pytest.mark.parametrize("raw", [b"", b"{", b'{"spec":{"x":"\xff"}}', b'{"a":1e999}', b"[" * 10**4, b"\x00", b"nul"])
def test_object_that_is_not_json_gets_no_patch(raw):
    decision = mutate(raw)
    assert decision.skipped.startswith("schema: ")
    assert decision.patch == []


@pytest.mark.parametrize("written", [None, "", "2026-01-01T00:00:00Z"])
def test_new_job_with_a_deletion_timestamp_gets_injections(written):
    assert hold(mpijob(metadata={"deletionTimestamp": written})).patch


def test_job_that_is_being_deleted_is_not_changed():
    stored = mutate(mpijob(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})).document
    decision = mutate(mpijob(), operation="UPDATE", stored=stored)
    assert (decision.skipped, decision.patch, decision.notes) == ("being deleted", [], [])
    assert decision.response("u-1").audit_annotations == {"skipped": "being deleted"}


CLAIMS = pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"ownerReferences": [{"kind": "JobSet"}, {"kind": "TrainJob", "controller": True}]}, "owned by a controller"),
        ({"labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"}}, "a copy made by Kueue"),
        ({"labels": {"kueue.x-k8s.io/prebuilt-workload-name": "w"}}, "a copy made by Kueue"),
        ({"annotations": {"kueue.x-k8s.io/prebuilt-workload-name": "w"}}, "a copy made by Kueue"),
    ],
)


def created_by(username, job, view):
    return pipelines.mutate(sent_for(job, username=username, namespace="team"), policy=DEFAULTS, view=view)


class TestClaims:
    """Jobs that claim, by an owner reference or by a label or annotation of Kueue, that a controller created them."""

    @CLAIMS
    @pytest.mark.parametrize("kueue", CONTROLLERS[:2])
    def test_claim_made_by_a_controller_is_trusted_if_kueue_is_installed(self, metadata, reason, kueue):
        decision = created_by(kueue, mpijob(metadata=metadata), Snapshot([config()]))
        assert (decision.skipped, decision.patch, decision.notes) == (reason, [], [])
        assert decision.response("u-1").audit_annotations == {"skipped": reason}

    @CLAIMS
    @pytest.mark.parametrize("controller", CONTROLLERS)
    def test_controller_has_no_special_role_without_kueue(self, metadata, reason, controller):
        decision = created_by(controller, mpijob(metadata=metadata), VIEW)
        assert set(decision.authors) == {"created-by", "job-timeout"}

    @CLAIMS
    def test_claim_by_an_ordinary_user_does_not_prevent_unskippable_injections(self, metadata, reason):
        decision = hold(mpijob(metadata=metadata))
        assert decision.document["spec"]["runPolicy"] == {"activeDeadlineSeconds": 86400}
        assert set(decision.authors) == {"created-by", "job-timeout"}
        assert decision.skipped == ""

    @CLAIMS
    def test_job_with_a_claim_is_not_changed_if_all_injections_are_skippable(self, metadata, reason):
        policy = policy_of({"job-timeout": {"default": None}, "created-by": {"enabled": False}})
        decision = hold(mpijob(metadata=metadata), policy)
        assert (decision.skipped, decision.patch, decision.document) == (reason, [], None)

    def test_update_that_claims_an_owner_keeps_injected_values(self):
        created = mutate(mpijob()).document
        owners = [{"kind": "TrainJob", "controller": True}]
        new = mpijob(metadata={"ownerReferences": owners, "annotations": created["metadata"]["annotations"]})
        again = mutate(new, operation="UPDATE", stored=created)
        assert without_list(again.document)["spec"] == created["spec"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": [{"kind": "Workflow"}, {"kind": "Workflow", "controller": False}]},
        {"ownerReferences": None},
        {"deletionTimestamp": None},
        {"labels": {"kueue.x-k8s.io/queue-name": "team"}},
        {"name": "", "generateName": "train-"},
    ],
)
def test_job_without_a_controller_gets_injections(metadata):
    decision = hold(mpijob(metadata=metadata))
    assert decision.skipped == ""
    assert decision.patch


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_only_creates_and_updates_are_mutated(operation):
    decision = mutate(mpijob(), operation=operation)
    assert (decision.skipped, decision.patch, decision.notes) == ("not a CREATE or UPDATE of a job", [], [])


def update(new, old, username="alice", policy=DEFAULTS, view=VIEW):
    sent = sent_for(new, old=old, operation="UPDATE", username=username, namespace="team")
    return pipelines.mutate(sent, policy=policy, view=view)


class TestUpdate:
    """An update keeps the injected values of the stored job and adds no new ones."""

    @pytest.mark.parametrize("policy", [DEFAULTS, BUSY], ids=["defaults", "busy"])
    def test_value_dropped_by_apply_is_restored(self, policy):
        submitted = mpijob()
        created = mutate(submitted, policy).document
        again = update(submitted, created, policy=policy)
        assert without_list(again.document) == without_list(created)
        assert (again.notes, again.warnings) == ([], [])

    @pytest.mark.parametrize("old", [mpijob(), {}, None, 3])
    def test_update_gets_no_new_injections(self, old):
        assert update(mpijob(), old, policy=BUSY).patch == []

    def test_value_changed_by_the_user_is_not_restored(self):
        created = mutate(mpijob()).document
        new = copy.deepcopy(created)
        new["spec"]["runPolicy"]["cleanPodPolicy"] = "All"
        new["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["env"][0]["value"] = "/mine"
        assert update(new, created).patch == []

    def test_time_limit_is_always_restored(self):
        created = mutate(mpijob()).document
        created["spec"]["runPolicy"]["activeDeadlineSeconds"] = 60
        off = policy_of({"job-timeout": {"enabled": False}})
        for policy in (DEFAULTS, off):
            again = update(mpijob(), created, policy=policy)
            assert again.document["spec"]["runPolicy"]["activeDeadlineSeconds"] == 60

    @pytest.mark.parametrize("controller", CONTROLLERS)
    def test_update_by_a_controller_is_not_changed_if_kueue_is_installed(self, controller):
        created = mutate(mpijob()).document
        again = update(mpijob(), created, controller, view=Snapshot([config()]))
        assert (again.skipped, again.patch) == ("an update by a controller", [])
        like_others = update(mpijob(), created, controller)
        assert like_others.patch == update(mpijob(), created).patch != []


@pytest.mark.parametrize("injection_id", list(injections.REGISTRY))
def test_note_of_each_injection_fits_into_a_warning(injection_id):
    example = examples()[injection_id]
    decision = hold(example.job, only(injection_id, **example.settings), view=example.view)
    assert set(decision.authors) == {injection_id}, (
        "the test file of each injection needs an EXAMPLE that the injection changes"
    )
    assert bool(decision.notes) is not injections.REGISTRY[injection_id].quiet
    assert decision.warnings == decision.notes, "the note of an example is never cut"
    assert all(note.startswith(f"{injection_id}: ") for note in decision.notes)


@pytest.mark.parametrize("injection_id", list(injections.REGISTRY))
def test_injections_neither_extend_a_stored_job_nor_create_a_pod_spec(injection_id):
    example = examples()[injection_id]
    policy = only(injection_id, **example.settings)
    assert update(example.job, example.job, policy=policy, view=example.view).patch == []
    without = mpijob(launcher={"spec": None}, worker={"spec": None})
    specs = (hold(without, policy, view=example.view).document or without)["spec"]["mpiReplicaSpecs"]
    assert [replica["template"]["spec"] for replica in specs.values()] == [None, None]


@pytest.mark.parametrize("injection_id", list(injections.REGISTRY))
def test_injection_can_be_switched_off(injection_id):
    example = examples()[injection_id]
    for enabled in (True, False):
        policy = policy_of({injection_id: {**example.settings, "enabled": enabled}})
        assert (injection_id in mutate(example.job, policy, view=example.view).authors) == enabled


@pytest.mark.parametrize("value", ["x" * 300, "\x1b[31m\n" * 50, "\u202e" * 20, "\U0001f600" * 200, "'\"" * 90])
def test_long_or_unusual_user_values_fit_into_warnings(value):
    keys = [f"training.openshift.io/{name}" for name in ("timeout", "timeout-action", "debug-mode")]
    annotations = {**dict.fromkeys(keys, value), "sidecar.istio.io/inject": "true"}
    off = {injection_id: {"enabled": False} for injection_id in injections.REGISTRY}
    policy = policy_of({**off, "istio": {}, "clean-pod-policy": {}, "job-timeout": {}})
    decision = hold(mpijob(metadata={"annotations": annotations, "name": value}), policy)
    assert decision.warnings[0].startswith("metadata.name: ")
    assert len(decision.warnings) == 6
    assert decision.warnings[-1].startswith("injected: job-timeout 24h, ")
    assert set(decision.warnings[1:-1]) < set(decision.notes), "no warning is cut"
    assert sum(note.startswith("job-timeout: ") for note in decision.notes) == 3


def test_object_that_does_not_fit_an_injection_gets_no_patch():
    def clash(job, settings, ctx, patch):
        patch.add(("metadata", "labels", "a"), "1")
        yield "done"
        patch.add(("kind", "b"), "2")

    entry = Injection(id="clash", settings=InjectionSettings, inject=clash, since="0.1")
    policy = Policy(DEFAULTS.document, rules=(), injections=((entry, InjectionSettings()),))
    decision = mutate(mpijob(), policy)
    assert decision.skipped == "schema: /kind/b: does not fit the object"
    assert (decision.patch, decision.notes, decision.document) == ([], [], None)


@pytest.mark.parametrize("field", ["uid", "deletionTimestamp", "labels", "annotations", "ownerReferences"])
def test_null_in_the_metadata_is_treated_as_missing(field: str) -> None:
    """In a server-side apply, the webhook gets the null. The API server replaces it afterwards."""
    job = mpijob()
    job["metadata"][field] = None
    decision = mutate(job)
    assert not decision.skipped
    assert decision.document["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400
