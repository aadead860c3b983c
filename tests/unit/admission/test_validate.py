"""The validating pipeline: actions, updates, controllers, values of a wrong type, and replies."""

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from tests.support import jobs
from tests.support.jobs import NO_TOKEN, REMOVE, request
from tests.support.kueue_objects import config
from tests.support.rule_checks import decide
from webhook.admission import pipelines
from webhook.admission.pipelines import load_policy
from webhook.api import review
from webhook.api.annotations import TIMEOUT
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown

# The command of this job has no number of ranks, so no rule compares ranks with workers.
GOOD = jobs.changed({**NO_TOKEN, "Launcher.template.spec.containers.0.command": ["train.sh"]})


def changed(changes: Mapping[str, Any], base: Mapping[str, Any] = GOOD) -> dict[str, Any]:
    return jobs.changed(changes, base)


def test_valid_job_is_admitted_without_warnings() -> None:
    decision = decide(GOOD)
    assert decision.allowed
    assert decision.warnings == []
    assert decision.response("u") == review.AdmissionResponse(uid="u", allowed=True)


def test_too_few_gpus_of_a_launcher_with_ranks_are_reported_once() -> None:
    """The fix that `gpus` suggests also satisfies `slots`."""
    limits = {"Worker.template.spec.containers.0.resources": {"limits": {"nvidia.com/gpu": "2"}}}
    job = changed({"spec.slotsPerWorker": 2, "spec.runLauncherAsWorker": True, **limits})
    decision = decide(job, "rules: {gpus: {min: 1}}")
    findings = [*decision.denied, *decision.warned]
    assert [(finding.rule, finding.violation.fix) for finding in findings if "GPU" in finding.violation.message] == [
        ("gpus", "Request 2 or more in resources.limits.")
    ]


def test_every_violation_is_in_one_reply() -> None:
    job = changed({"Worker.replicas": 1, "Launcher.replicas": 2, "spec.runPolicy.ttlSecondsAfterFinished": 1})
    decision = decide(job)
    assert not decision.allowed
    assert decision.message == (
        'MPIJob "train" was rejected: 2 problems\n'
        "1. spec.mpiReplicaSpecs[Launcher].replicas: is 2, there is always one launcher [upstream-contract]\n"
        "   Set replicas to 1.\n"
        "2. spec.mpiReplicaSpecs[Worker].replicas: 1 worker, at least 2 required [worker-count]\n"
        "   Set replicas to 2 or more."
    )
    warning = "spec.runPolicy.ttlSecondsAfterFinished: after 1 s the job may run a second time."
    assert decision.warnings == [f"{warning} Set it to 30 or more. [retention]"]


def test_rejection_has_causes_that_programs_can_read() -> None:
    reply = json.loads(review.encode(decide(changed({"Worker.replicas": 1})).response("the-uid")))
    assert reply["apiVersion"] == "admission.k8s.io/v1"
    assert reply["kind"] == "AdmissionReview"
    response = reply["response"]
    assert response["uid"] == "the-uid"
    assert response["allowed"] is False
    assert "patch" not in response
    assert "patchType" not in response
    assert response["auditAnnotations"] == {"denied": "worker-count"}
    assert response["status"]["code"] == 422
    assert response["status"]["reason"] == "Invalid"
    assert response["status"]["details"] == {
        "name": "train",
        "group": "kubeflow.org",
        "kind": "MPIJob",
        "causes": [
            {
                "reason": "FieldValueInvalid",
                "message": "1 worker, at least 2 required. Set replicas to 2 or more. [worker-count]",
                "field": "spec.mpiReplicaSpecs[Worker].replicas",
            }
        ],
    }


@pytest.mark.parametrize(
    ("policy", "denied", "warned", "audited"),
    [
        ("", ["worker-count"], [], []),
        ("mode: warn", [], ["worker-count"], []),
        ("mode: audit", [], [], ["worker-count"]),
        ("rules: {worker-count: {action: warn}}", [], ["worker-count"], []),
        ("rules: {worker-count: {action: audit}}", [], [], ["worker-count"]),
        ("mode: warn\nrules: {worker-count: {action: audit}}", [], [], ["worker-count"]),
        ("rules: {worker-count: {action: 'off'}}", [], [], []),
        ("rules: {worker-count: {action: off}}", [], [], []),
        ("rules: {worker-count: {min: 1}}", [], [], []),
    ],
)
def test_action_and_mode_decide_about_a_violation(
    policy: str, denied: list[str], warned: list[str], audited: list[str]
) -> None:
    decision = decide(changed({"Worker.replicas": 1, "spec.slotsPerWorker": 2}), policy)
    assert [f.rule for f in decision.denied] == denied
    assert [f.rule for f in decision.warned if f.rule == "worker-count"] == warned
    assert [f.rule for f in decision.audited] == audited
    assert decision.allowed is (not denied)


def test_policy_decides_about_jobs_without_workers() -> None:
    job = changed({"Worker": REMOVE})
    assert [f.rule for f in decide(job).denied] == ["worker-count"]
    decision = decide(job, "rules: {worker-count: {min: 0}}")
    assert (decision.denied, decision.warnings) == ([], [])


def test_advisory_violation_never_rejects_a_job() -> None:
    decision = decide(changed({"Worker.template.spec.hostname": "h"}))
    assert decision.allowed
    path = "spec.mpiReplicaSpecs[Worker].template.spec.hostname"
    assert decision.warnings == [f"{path}: the operator overwrites it. Remove it. [upstream-contract]"]


class TestUpdate:
    OLD = changed({"Worker.replicas": 1})

    @pytest.mark.parametrize(
        ("job", "fields", "why"),
        [
            (changed({"metadata.resourceVersion": "2"}, OLD), {}, "no checked field changed"),
            (changed({"Worker.replicas": 0}), {"subResource": "status"}, "not a CREATE or UPDATE of a job"),
            (changed({"Worker.replicas": 0}), {"operation": "DELETE"}, "not a CREATE or UPDATE of a job"),
        ],
    )
    def test_update_without_checked_changes_is_admitted(
        self, job: dict[str, Any], fields: dict[str, Any], why: str
    ) -> None:
        decision = decide(job, old=self.OLD, **fields)
        assert decision.allowed
        assert decision.skipped == why
        assert decision.response("u").audit_annotations == {"skipped": why}

    @pytest.mark.parametrize("written", [None, "", "2026-01-01T00:00:00Z"])
    def test_deletion_timestamp_in_a_new_job_is_ignored(self, written: str | None) -> None:
        bad = changed({"metadata.deletionTimestamp": written, "Worker.replicas": 500})
        assert not decide(bad).allowed
        assert not decide(bad, old=self.OLD).allowed

    def test_job_being_deleted_may_change_outside_its_spec(self) -> None:
        going = changed(
            {"metadata.deletionTimestamp": "2026-01-01T00:00:00Z", "metadata.finalizers": ["a/b"]}, self.OLD
        )
        free = changed({"metadata.finalizers": [], "metadata.labels": {"a": "b"}}, going)
        assert decide(free, old=going).skipped == "being deleted"
        assert not decide(changed({"Worker.replicas": 500}, free), old=going).allowed

    def test_job_created_by_kueue_is_checked_like_any_other_job(self) -> None:
        user = "system:serviceaccount:kueue-system:kueue-controller-manager"
        assert not decide(changed({"Worker.replicas": 1}), username=user).allowed

    def test_update_by_a_controller_listed_in_the_policy_is_admitted(self) -> None:
        policy, view = "controllers: [bob]", Snapshot([config()])
        job = changed({"metadata.annotations": {TIMEOUT: "x"}}, self.OLD)
        assert decide(job, old=self.OLD, username="bob", policy=policy, view=view).allowed
        assert not decide(job, old=self.OLD, username="alice", policy=policy, view=view).allowed

    def test_unreadable_old_object_excuses_no_violation(self) -> None:
        assert not decide(self.OLD, old={"spec": 3}).allowed

    @pytest.mark.parametrize("field", ["Worker.template.spec.containers.0.securityContext", "metadata.annotations"])
    def test_change_of_a_checked_field_is_judged(self, field: str) -> None:
        assert decide(changed({field: {"a": "b"}}), old=GOOD).skipped == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Worker.replicas": "4"}, "spec.mpiReplicaSpecs[Worker].replicas: must be a whole number, not a string"),
        ({"spec.mpiReplicaSpecs": []}, "spec.mpiReplicaSpecs: must be a mapping, not a list"),
        (
            {"Launcher.template.spec.containers.0.command": "mpirun"},
            "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].command: must be a list, not a string",
        ),
        ({"spec.slotsPerWorker": 2**40}, "spec.slotsPerWorker: must be a whole number of 2147483647 or less"),
    ],
)
def test_value_of_a_wrong_type_is_rejected_with_its_path(changes: dict[str, Any], message: str) -> None:
    decision = decide(changed(changes))
    assert [f"{f.violation.path}: {f.violation.message}" for f in decision.denied] == [message]
    assert decision.message.startswith('MPIJob "train" was rejected: 1 problem\n1. spec.')


def test_missing_replica_specs_are_reported() -> None:
    decision = decide(changed({"spec.mpiReplicaSpecs": REMOVE}))
    assert [f.rule for f in decision.denied] == ["upstream-contract"], "the missing workers are not reported separately"


def test_rules_do_not_change_the_request() -> None:
    sent = request(GOOD)
    before = bytes(sent.object)
    pipelines.validate(sent, policy=load_policy(None), view=NothingKnown(), today=date.min)
    assert bytes(sent.object) == before


@pytest.mark.parametrize(("review_of", "uid"), [("v1", "u"), ("v1beta1", "u"), ("v1", "")])
def test_error_for_an_invalid_review_contains_the_uid_of_the_review(review_of: str, uid: str) -> None:
    data = f'{{"apiVersion": "admission.k8s.io/{review_of}", "kind": "AdmissionReview", "request": {{"uid": "{uid}"}}}}'
    with pytest.raises(review.ReviewError) as caught:
        review.decode(data.encode())
    assert caught.value.uid == uid
