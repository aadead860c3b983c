"""A violation that follows from another violation comes after it in the reply and is not counted."""

import json
from typing import Any

import pytest

from tests.support.bad_jobs.worlds import World, worlds
from tests.support.bad_jobs.written import change
from tests.support.jobs import changed
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.cli import job_check
from webhook.cli.files import Manifest
from webhook.cli.job_world import JobWorld
from webhook.cluster.resources.mpijobs import MPIJobRecord
from webhook.kit.settings import Action
from webhook.parts.standing_audit.reports import report
from webhook.parts.standing_audit.standing import broken
from webhook.policy.in_force import PolicySet, load_policies
from webhook.rules import REGISTRY, Violation

WORLDS = {each.title: each for each in worlds()}


def judged(world: World, *changes: str, policy: PolicySet | None = None) -> Decision:
    job: dict[str, Any] = changed({"metadata.namespace": world.namespace, **dict(map(change, changes))})
    judged_by = JobWorld(world.cluster, schema=None, instead=policy or world.policy)
    return job_check.check(Manifest("job.yaml", job), judged_by, namespace=world.namespace).validation


ALL_GPUS = ("gpu-request:", "gpu: 24")


@pytest.mark.parametrize(
    ("title", "changes", "rule", "cause"),
    [
        ("quota", ("Worker.replicas: 150",), "resource-quota", "worker-count"),
        ("quota", ALL_GPUS, "resource-quota", "gpus"),
        ("quota", ("first.resources.limits.memory: 1e1.5",), "resource-quota", "upstream-contract"),
        ("queued", ("queue: training", "Worker.replicas: 150"), "ever-fits", "worker-count"),
        ("queued", ("queue: training", *ALL_GPUS), "ever-fits", "gpus"),
        ("queued", ("queue: training", *ALL_GPUS), "accelerator-available", "gpus"),
        ("queued", ("queue: training", "first.resources.limits.nvidia\\.com/gpus: 2", "gpu:"), "ever-fits", ""),
        ("open", ("Worker.replicas: 150",), "accelerator-available", "worker-count"),
        ("open", ("gang: {queue: research}", "Worker.replicas: 150"), "volcano-queue", "worker-count"),
        ("nothing known", ("Worker.replicas: 0", "run: [mpirun, -np, '16', train]"), "slots", "upstream-contract"),
        ("nothing known", ("Worker.replicas: 1", "run: [mpirun, -np, '16', train]"), "slots", "worker-count"),
        ("nothing known", ("run: [mpirun, -np, '1000', train]",), "slots", ""),
        ("nothing known", ("Worker.replicas: 150", "spec.slotsPerWorker: 40"), "slots", ""),
        ("open", ("queue: training", "gang: {queue: research}"), "gang", "local-queue"),
        ("baseline", ("pod.hostNetwork: true",), "host-network", "pod-security"),
        ("open", ("pod.hostNetwork: true",), "host-network", ""),
        ("open", ("timeout: 48h", "spec.runPolicy.activeDeadlineSeconds: -1"), "job-timeout", "upstream-contract"),
        ("open", ("timeout: 3h", "spec.runPolicy.activeDeadlineSeconds: 60"), "job-timeout", ""),
        ("tight policy", ("pod.nodeSelector: {team: reserch}",), "accelerator-available", "compliance"),
        (
            "tight policy",
            ("pod.volumes: [{name: d, persistentVolumeClaim: {claimName: dataset}}]",),
            "compliance",
            "references",
        ),
        (
            "tight policy",
            ("spec.mpiImplementation: Intel", "run: [mpirun, --allow-run-as-root, -np, '4', train]"),
            "command-line",
            "mpi-implementation",
        ),
        (
            "restricted",
            ("pod.securityContext.runAsUser: 1000", "first.securityContext: {capabilities: {add: [SYS_ADMIN]}}"),
            "ssh-paths",
            "pod-security",
        ),
        (
            "open",
            ("spec.sshAuthMountPath: /etc/mpi", "run: [mpirun, --allow-run-as-root, train]"),
            "ssh-paths",
            "upstream-contract",
        ),
        ("open", ("pod.schedulerName: x", "Worker.replicas: 150"), "gang", ""),
    ],
)
def test_cause_comes_first_and_follow_ons_are_not_counted(
    title: str, changes: tuple[str, ...], rule: str, cause: str
) -> None:
    decision = judged(WORLDS[title], *changes)
    found = [each for each in (*decision.denied, *decision.warned) if each.rule == rule]
    assert cause in {each.cause for each in found}, found
    for findings in (decision.denied, decision.warned, decision.audited):
        follow_ons = [bool(each.cause) for each in findings]
        assert follow_ons == sorted(follow_ons)
    counted = {each.rule for _, each in decision.findings}
    assert {cause or rule} <= counted
    assert not cause or rule not in counted or any(not each.cause for each in found)


def test_warning_does_not_hide_a_rejection() -> None:
    actions: dict[str, dict[str, Any]] = {each: {"action": "deny"} for each in REGISTRY}
    actions["worker-count"] = {"action": "warn"}
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}
    policy = load_policies(json.dumps({**head, "rules": actions}))
    decision = judged(WORLDS["quota"], "Worker.replicas: 150", policy=policy)
    assert ("resource-quota", Action.DENY) in broken(decision)
    assert all(not each.cause for each in decision.denied)


def test_exempted_cause_does_not_hide_a_violation() -> None:
    exempt = {
        "exemptions": [{"rules": ["worker-count"], "namespaces": ["quota"], "reason": "OPS-1", "expires": "2999-01-01"}]
    }
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}
    decision = judged(WORLDS["quota"], "Worker.replicas: 150", policy=load_policies(json.dumps({**head, **exempt})))
    assert [(each.rule, each.cause) for each in decision.denied] == [("resource-quota", "")]


def test_warning_can_hide_another_warning() -> None:
    decision = Decision()
    replicas = "spec.mpiReplicaSpecs[Worker].replicas"
    decision.add(Finding("a", Violation("spec", "m", "f", follows="spec.mpiReplicaSpecs.*")), Action.WARN)
    decision.add(Finding("b", Violation(replicas, "m", "f")), Action.WARN)
    decision.put_worst_first()
    assert [(each.rule, each.cause) for each in decision.warned] == [("b", ""), ("a", "b")]


def test_mutual_causes_are_both_counted() -> None:
    decision = Decision()
    for rule in ("a", "b"):
        decision.add(Finding(rule, Violation("spec", "m", "f", follows="spec")), Action.DENY)
    decision.put_worst_first()
    assert [each.cause for each in decision.denied] == ["", ""]


def test_follow_on_is_marked_in_a_reply_and_absent_from_a_report() -> None:
    decision = judged(WORLDS["quota"], "Worker.replicas: 150")
    assert "[resource-quota, follows from worker-count]" in decision.message
    found = report(MPIJobRecord("quota", "train", "u-1"), decision)
    assert found is not None
    rules = {each["rule"] for each in found["results"]}
    assert "worker-count" in rules
    assert "resource-quota" not in rules
    assert "resource-quota" not in dict(broken(decision))
