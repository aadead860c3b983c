"""The decision on a job that took too much processor time."""

from typing import Any

import pytest

from tests.support.jobs import changed, request
from tests.support.kueue_objects import config
from tests.support.policies import HEADER
from webhook.admission import too_expensive
from webhook.admission.pipelines import Policy, load_policy
from webhook.api.review import AdmissionRequest
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown

DEFAULTS = load_policy(None)


WITH_KUEUE = Snapshot([config()])
KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"


def update(changes: dict[str, Any], username: str) -> AdmissionRequest:
    return request(changed(changes), old=changed(), username=username)


def test_too_expensive_job_is_rejected() -> None:
    decision = too_expensive.verdict(request(changed()), DEFAULTS, WITH_KUEUE)
    assert decision.message == (
        'MPIJob "train" was rejected: 1 problem\n'
        "1. spec: too expensive to judge: its checks take more processor time than one job may have [job-size]\n"
        "   Make it smaller: fewer containers, variables, volumes or words of a command."
    )


@pytest.mark.parametrize(("mode", "field"), [("warn", "warned"), ("audit", "audited")])
def test_too_expensive_job_is_admitted_in_mode_warn_or_audit(mode: str, field: str) -> None:
    policy: Policy = load_policy(f"{HEADER}mode: {mode}")
    decision = too_expensive.verdict(request(changed()), policy, WITH_KUEUE)
    assert decision.allowed
    assert [finding.rule for finding in getattr(decision, field)] == ["job-size"]


@pytest.mark.parametrize(
    ("changes", "users", "passing"),
    [
        ({}, ["alice"], ["alice"]),
        ({"metadata.finalizers": ["a"]}, ["alice"], ["alice"]),
        ({"status": {"conditions": []}}, ["alice"], ["alice"]),
        ({"metadata.labels.a": "b"}, ["alice", KUEUE], [KUEUE]),
        ({"metadata.annotations.a": "b"}, ["alice", KUEUE], [KUEUE]),
        ({"spec.runPolicy.suspend": True}, ["alice", KUEUE], [KUEUE]),
        ({"Worker.template.spec.nodeSelector": {"a": "b"}}, ["alice", KUEUE], [KUEUE]),
        ({"Worker.template.metadata.labels": {"a": "b"}}, ["alice", KUEUE], [KUEUE]),
        ({"Launcher.template.spec.tolerations": [{"operator": "Exists"}]}, ["alice", KUEUE], [KUEUE]),
        ({"spec.slotsPerWorker": 3}, [KUEUE], []),
        ({"spec.runPolicy.cleanPodPolicy": "All"}, [KUEUE], []),
        ({"Worker.replicas": 5}, [KUEUE], []),
        ({"Worker.template.spec.hostNetwork": True}, [KUEUE], []),
        ({"Worker.template.spec.containers.0.image": "other"}, [KUEUE], []),
    ],
)
def test_update_passes_if_it_changes_no_checked_field_or_is_a_usual_change_by_kueue(
    changes: dict[str, Any], users: list[str], passing: list[str]
) -> None:
    decisions = {user: too_expensive.verdict(update(changes, user), DEFAULTS, WITH_KUEUE) for user in users}
    assert [user for user, decision in decisions.items() if decision.allowed] == passing
    assert {decisions[user].skipped for user in passing} <= {too_expensive.AS_STORED}


def test_kueues_account_has_no_special_role_without_kueue() -> None:
    assert too_expensive.verdict(update({"metadata.finalizers": []}, KUEUE), DEFAULTS, NothingKnown()).allowed
    assert not too_expensive.verdict(update({"spec.runPolicy.suspend": True}, KUEUE), DEFAULTS, NothingKnown()).allowed


CREATOR = {"training.openshift.io/created-by": "alice"}
OWN_LIMIT = "Worker.template.spec.activeDeadlineSeconds"


def test_too_expensive_job_gets_only_the_injections_that_it_cannot_skip() -> None:
    job = changed({"metadata.annotations": {"training.openshift.io/skip": "job-timeout"}})
    decision = too_expensive.injection(request(job), DEFAULTS, NothingKnown())
    limits = ["/spec/runPolicy", "/spec/mpiReplicaSpecs/Worker/template/spec"]
    creator, *paths = [each["path"] for each in decision.patch]
    assert creator == "/metadata/annotations/training.openshift.io~1created-by"
    assert paths == [f"{parent}/activeDeadlineSeconds" for parent in limits]
    assert "job-size: too expensive to judge, so nothing was injected but created-by, job-timeout" in decision.warnings


@pytest.mark.parametrize(
    "job",
    [
        changed({"spec.runPolicy": []}),
        changed({"spec.runPolicy.activeDeadlineSeconds": 60, OWN_LIMIT: 60, "metadata.annotations": CREATOR}),
        [],
    ],
)
def test_job_that_is_unreadable_or_has_the_injected_values_gets_no_injection(job: Any) -> None:
    decision = too_expensive.injection(request(job), DEFAULTS, NothingKnown())
    assert (decision.allowed, decision.patch) == (True, [])
    assert "job-size: too expensive to judge, so nothing was injected" in decision.warnings


def test_update_gets_no_injection() -> None:
    decision = too_expensive.injection(update({}, "alice"), DEFAULTS, NothingKnown())
    assert (decision.patch, decision.skipped) == ([], too_expensive.TOO_EXPENSIVE)


def test_user_is_warned_if_nothing_is_injected() -> None:
    decision = too_expensive.no_injection(request(changed()), DEFAULTS)
    assert decision.allowed
    assert decision.patch == []
    assert decision.warnings == ["job-size: too expensive to judge, so nothing was injected"]


def test_unreadable_object_is_reported_by_the_name_in_the_request() -> None:
    sent = request(changed())
    sent.object = type(sent.object)(b"[")
    assert too_expensive.verdict(sent, DEFAULTS, WITH_KUEUE).name == sent.name
