import json
from datetime import date
from typing import Any

import click

from tests.support.jobs import changed
from tests.support.policies import layer
from webhook.cli.job_world import JobWorld
from webhook.cli.policy.replay_report import ReplayReport, replay
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import PolicySet
from webhook.policy.layers import Layer

TODAY = date(2026, 11, 21)


def job(name: str, workers: int, namespace: str = "team-a") -> bytes:
    return json.dumps(
        changed({"metadata.name": name, "metadata.namespace": namespace, "Worker.replicas": workers})
    ).encode()


def what_if(after: list[Layer], *before: Layer, jobs: list[bytes], objects: Any = ()) -> ReplayReport:
    world = JobWorld(Snapshot(objects), policies=PolicySet(before), origin="namespace n of c")
    return replay(world, jobs, after, today=TODAY)


def text(outcome: ReplayReport) -> list[str]:
    return [click.unstyle(line) for line in outcome.as_text()]


def test_changes_are_reported_for_each_job() -> None:
    outcome = what_if(
        [layer("base", "rules: {worker-count: {min: 3, max: 8}, gpus: {max: 1}}"), layer("new")],
        layer("base", "rules: {worker-count: {min: 4}, gpus: {max: 4}}"),
        jobs=[job("a", 9), job("b", 5), job("c", 3), job("d", 1)],
    )
    assert not outcome.safe
    assert text(outcome) == [
        "now:  base (namespace n of c)",
        "then: base (changed), new (new)",
        "",
        "would newly be denied",
        "  team-a/a: gpus, worker-count",
        "  team-a/b: gpus",
        "",
        "would newly deny 2 of 4 jobs: gpus 2, worker-count 1 (team-a/a, team-a/b)",
    ]
    report = outcome.as_json()
    gpus, workers = (hit for hit in report.pop("hits") if hit["action"] == "deny" and hit["new"])
    about = {"action": "deny", "namespace": "team-a", "gone": [], "asNow": 0}
    assert gpus == {**about, "rule": "gpus", "new": ["team-a/a", "team-a/b", "team-a/c", "team-a/d"]}
    assert {**workers, "gone": [], "asNow": 0} == {**about, "rule": "worker-count", "new": ["team-a/a"]}
    assert report == {
        "before": ["base"],
        "after": ["base", "new"],
        "jobs": 4,
        "newlyDenied": {"team-a/a": ["gpus", "worker-count"], "team-a/b": ["gpus"]},
        "newlyAdmitted": [],
        "injections": {},
        "summary": "would newly deny 2 of 4 jobs: gpus 2, worker-count 1 (team-a/a, team-a/b)",
        "injectionsSummary": "",
    }


def test_looser_policy_is_safe() -> None:
    outcome = what_if([], layer("base", "rules: {worker-count: {max: 8}}"), jobs=[job("b", 9), job("a", 9)])
    assert outcome.safe
    assert text(outcome) == [
        "now:  base (namespace n of c)",
        "then: the built-in defaults",
        "gone: base",
        "",
        "would newly be admitted",
        "  team-a/a",
        "  team-a/b",
        "",
        "only loosens: would newly deny none of 2 jobs, and admit 2 (team-a/a, team-a/b)",
    ]


def test_adding_a_setting_with_its_default_is_a_change() -> None:
    same = layer("base", "rules: {worker-count: {max: 100}}")
    assert text(what_if([same], layer("base"), jobs=[]))[1] == "then: base (changed)"
    assert text(what_if([same], same, jobs=[]))[1] == "then: base"


def test_namespace_labels_select_policies() -> None:
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"tier": name}}}
        for name in ("x", "y")
    ]
    after = [layer("x-only", "namespaces: {matchLabels: {tier: x}}\nrules: {worker-count: {max: 3}}")]
    outcome = what_if(after, jobs=[job("a", 4, "x"), job("b", 4, "y"), job("c", 4, "z")], objects=objects)
    assert outcome.result.newly_denied == {"x/a": ["worker-count"]}
