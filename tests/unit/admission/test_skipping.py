"""Only the usual updates by the controllers of Kueue and Kubernetes skip the rules."""

from typing import Any

import pytest

from tests.support.jobs import NO_TOKEN, REMOVE, changed
from tests.support.kueue_objects import config
from tests.support.policies import HEADER
from tests.support.rule_checks import decide
from webhook.admission.decision import Decision
from webhook.admission.pipelines import load_policy
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown

Json = dict[str, Any]

KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
UNSEEN = "an update by a controller"
POLICY = load_policy(HEADER + "rules: {images: {allowedRegistries: [registry.example.com]}}")
STORED = changed({"spec.runPolicy.suspend": True, "Worker.template.metadata": REMOVE})
STARTS: Json = {
    "spec.runPolicy.suspend": False,
    **{
        f"{role}.template.{field}": value
        for role in ("Launcher", "Worker")
        for field, value in {
            "metadata.labels": {"kueue.x-k8s.io/podset": role.lower()},
            "metadata.annotations": {"kueue.x-k8s.io/workload": "mpijob-train"},
            "spec.nodeSelector": {"cloud.example.com/pool": "a100"},
            "spec.tolerations": [{"key": "gpu", "operator": "Exists"}],
            "spec.schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
        }.items()
    },
}
WITH_KUEUE = Snapshot([config()])


def update(changes: Json, *, username: str = KUEUE, view: ClusterView = WITH_KUEUE, stored: Json = STORED) -> Decision:
    return decide(changed(changes, stored), POLICY, view=view, old=stored, username=username)


def test_kueue_can_start_and_stop_a_job_without_checks() -> None:
    assert update(STARTS).skipped == UNSEEN
    running = changed(STARTS, STORED)
    assert decide(STORED, POLICY, view=WITH_KUEUE, old=running, username=KUEUE).skipped == UNSEEN


@pytest.mark.parametrize("field", sorted(STARTS))
def test_each_usual_change_by_kueue_skips_the_rules(field: str) -> None:
    assert update({field: STARTS[field]}).skipped == UNSEEN
    assert update({field: STARTS[field]}, username="alice").skipped == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"Worker.template.spec.containers.0.image": "evil.example.com/miner:1"},
        {"Worker.template.spec.containers.0.securityContext": {"privileged": True}},
        {"Worker.template.spec.affinity": {}},
        {"Worker.template.spec.hostNetwork": True},
        {"Worker.replicas": 5},
        {"spec.runPolicy.activeDeadlineSeconds": 1},
        {"spec.runPolicy.managedBy": "x"},
        {"spec.mpiReplicaSpecs.Other": {}},
        {"Worker": REMOVE},
        {"spec.unknown": 1},
    ],
)
@pytest.mark.parametrize("more", [{}, STARTS])
def test_unusual_change_by_a_controller_is_judged(changes: Json, more: Json) -> None:
    for username in (KUEUE, COLLECTOR):
        assert update({**more, **changes}, username=username).skipped == ""


def test_violation_in_an_unusual_change_by_kueue_is_rejected() -> None:
    changes = {**STARTS, "Worker.template.spec.containers.0.image": "evil.example.com/miner:1"}
    assert [each.rule for each in update(changes).denied] == ["images"]


def test_account_of_kueue_has_no_special_role_if_kueue_is_not_installed() -> None:
    assert update(STARTS, view=NothingKnown()).skipped == ""
    assert update(STARTS, view=NothingKnown()).allowed, "the update makes nothing worse"


@pytest.mark.parametrize("username", [KUEUE, COLLECTOR])
@pytest.mark.parametrize("view", [WITH_KUEUE, NothingKnown()], ids=["Kueue", "no Kueue"])
def test_update_of_metadata_or_status_by_a_controller_is_admitted(username: str, view: ClusterView) -> None:
    for changes in ({"metadata.labels": {"a": "b"}}, {"metadata.finalizers": ["x/y"]}, {"status": {"conditions": []}}):
        decision = update(changes, username=username, view=view)
        assert decision.allowed
        assert (decision.skipped == UNSEEN) == (view is WITH_KUEUE)


@pytest.mark.parametrize("spec", [None, [], {"mpiReplicaSpecs": {"Worker": None}}, {"mpiReplicaSpecs": 3}])
def test_unexpected_spec_raises_no_error(spec: Any) -> None:
    stored = {**STORED, "spec": spec}
    decide(STORED, POLICY, view=WITH_KUEUE, old=stored, username=KUEUE)
    decide(stored, POLICY, view=WITH_KUEUE, old=STORED, username=KUEUE)


def test_required_value_removed_by_a_controller_is_reported() -> None:
    policy = "injections: {api-access: {required: deny}}"
    stored = changed(NO_TOKEN)
    new = changed({"Worker.template.spec.automountServiceAccountToken": REMOVE}, stored)
    denied = decide(new, policy, view=WITH_KUEUE, old=stored, username=KUEUE).denied
    assert [finding.rule for finding in denied] == ["required-injection"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("finalizers", ["example.com/wait"]),
        ("ownerReferences", [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]),
    ],
)
def test_custom_rules_judge_any_change_of_user_metadata(field: str, value: Any) -> None:
    policy = f'rules: {{custom: [{{id: a, expression: "!has(object.metadata.{field})", message: forbidden}}]}}'
    stored, new = changed(), changed({f"metadata.{field}": value})

    def rules(job: Json, old: Json | None) -> list[str]:
        return [finding.rule for finding in decide(job, policy, old=old).denied]

    assert rules(new, None) == rules(new, stored) == ["custom/a"]
    assert rules(stored, new) == []
