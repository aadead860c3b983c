"""A violation that follows from another violation comes after the other violations in the reply and is not counted."""

import json
from typing import Any

import pytest

from tests.support.bad_jobs.worlds import World, refusing, worlds
from tests.support.bad_jobs.written import change
from tests.support.jobs import changed
from tests.support.policies import HEADER
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.cli import job_check
from webhook.cli.files import Manifest
from webhook.cli.job_world import JobWorld
from webhook.kit.settings import Action
from webhook.parts.standing_audit.standing import broken
from webhook.policy.in_force import PolicySet, load_policies
from webhook.rules import REGISTRY, Violation

WORLDS = {each.title: each for each in worlds()}


def judged(world: World, *changes: str, policy: PolicySet | None = None) -> Decision:
    job: dict[str, Any] = changed({"metadata.namespace": world.namespace, **dict(map(change, changes))})
    judged_by = JobWorld(world.cluster, schema=None, instead=policy or world.policy)
    return job_check.check(Manifest("job.yaml", job), judged_by, namespace=world.namespace).validation


REPLICAS = "spec.mpiReplicaSpecs[Worker].replicas"


def at_most(workers: int) -> PolicySet:
    return refusing({"worker-count": {"min": 1, "max": workers}})


@pytest.mark.parametrize(
    ("title", "changes", "most", "rule", "cause"),
    [
        ("quota", ("Worker.replicas: 150",), 1, "resource-quota", "worker-count"),
        ("quota", ("Worker.replicas: 150",), 100, "resource-quota", ""),
        ("quota", ("gpu-request:", "gpu: 24"), 100, "resource-quota", ""),
        ("queued", ("queue: training", "Worker.replicas: 150"), 2, "ever-fits", "worker-count"),
        ("queued", ("queue: training", "Worker.replicas: 150"), 100, "ever-fits", ""),
        ("queued", ("queue: training", "gpu-request:", "gpu: 24"), 100, "accelerator-available", ""),
        ("open", ("Worker.replicas: 150",), 2, "accelerator-available", "worker-count"),
        ("open", ("Worker.replicas: 150",), 100, "accelerator-available", ""),
        ("open", ("Worker.replicas: 60",), 100, "accelerator-available", ""),
        ("nothing known", ("Worker.replicas: 1", "run: [mpirun, -np, '64', train]"), 100, "slots", ""),
        ("open", ("queue: training", "gang: {queue: research}"), 100, "gang", ""),
        ("baseline", ("pod.hostNetwork: true",), 100, "host-network", "pod-security"),
        ("open", ("pod.hostNetwork: true",), 100, "host-network", ""),
        ("tight policy", ("pod.nodeSelector: {team: reserch}",), 2, "accelerator-available", ""),
        (
            "tight policy",
            ("pod.volumes: [{name: d, persistentVolumeClaim: {claimName: dataset}}]",),
            2,
            "compliance",
            "references",
        ),
        ("open", ("pod.schedulerName: x", "Worker.replicas: 150"), 100, "gang", ""),
    ],
)
def test_cause_comes_first_and_follow_ons_are_not_counted(
    title: str, changes: tuple[str, ...], most: int, rule: str, cause: str
) -> None:
    world = WORLDS[title]
    decision = judged(world, *changes, policy=None if "policy" in title else at_most(most))
    matching = [each for each in (*decision.denied, *decision.warned) if each.rule == rule]
    assert cause in {each.cause for each in matching}, matching
    for findings in (decision.denied, decision.warned, decision.audited):
        follow_ons = [bool(each.cause) for each in findings]
        assert follow_ons == sorted(follow_ons)
    counted = {each.rule for _, each in decision.findings}
    assert {cause or rule} <= counted
    assert not cause or rule not in counted or any(not each.cause for each in matching)


def test_warning_does_not_hide_a_rejection() -> None:
    actions: dict[str, dict[str, Any]] = {each: {"action": "deny"} for each in REGISTRY}
    actions["worker-count"] = {"action": "warn"}
    policy = load_policies(f"{HEADER}rules: {json.dumps(actions)}")
    decision = judged(WORLDS["quota"], "Worker.replicas: 150", policy=policy)
    assert ("resource-quota", Action.DENY) in broken(decision)
    assert all(not each.cause for each in decision.denied)


def test_exempted_cause_does_not_hide_a_violation() -> None:
    exemption = "{rules: [worker-count], namespaces: [quota], reason: OPS-1, expires: 2999-01-01}"
    policy = load_policies(f"{HEADER}exemptions: [{exemption}]")
    decision = judged(WORLDS["quota"], "Worker.replicas: 150", policy=policy)
    assert [(each.rule, each.cause) for each in decision.denied] == [("resource-quota", "")]


def decided(*findings: Finding) -> list[tuple[str, str]]:
    decision = Decision()
    for finding in findings:
        decision.add(finding, Action.WARN)
    decision.put_worst_first()
    return [(each.rule, each.cause) for each in decision.warned]


def test_warning_can_hide_another_warning() -> None:
    after = Finding("a", Violation("spec", "m", "f", follows=REPLICAS))
    assert decided(after, Finding("b", Violation(REPLICAS, "m", "f"))) == [("b", ""), ("a", "b")]
    assert decided(after, Finding("b", Violation("spec.mpiReplicaSpecs[Worker]", "m", "f"))) == [("a", ""), ("b", "")]


def test_violations_that_follow_from_each_other_are_all_counted() -> None:
    ring = [Finding(rule, Violation(rule, "m", "f", follows=cause)) for rule, cause in ("ab", "bc", "ca")]
    assert decided(*ring) == [("a", ""), ("b", ""), ("c", "")]


def test_follow_on_is_marked_in_a_reply_and_absent_from_the_audit() -> None:
    decision = judged(WORLDS["quota"], "Worker.replicas: 150", policy=at_most(1))
    assert "[resource-quota, follows from worker-count]" in decision.message
    rules = dict(broken(decision))
    assert "worker-count" in rules
    assert "resource-quota" not in rules
