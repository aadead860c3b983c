"""The report of `policy audit`."""

import json
from datetime import date
from typing import Any

import click

from tests.support.job_lives import condition
from tests.support.jobs import changed
from tests.support.policies import layer
from webhook.cli.job_world import JobWorld
from webhook.cli.policy.audit_report import AuditReport, audit
from webhook.cluster.snapshot import Snapshot

POLICY = """
rules:
  worker-count: {max: 3}
  gpus: {max: 8}
  slots: {action: warn}
"""
ENDED = {"conditions": [condition("Succeeded")], "completionTime": "2026-01-01T00:00:00Z"}


def job(name: str, workers: int = 2, namespace: str = "team-a", **changes: Any) -> Any:
    return changed(
        {"metadata.name": name, "metadata.namespace": namespace, "Worker.replicas": workers, **changes},
    )


def audited(*jobs: Any, policy: str = POLICY, namespace: str = "") -> AuditReport:
    world = JobWorld(Snapshot(jobs), origin="namespace n of c")
    return audit(world, [layer("p", policy)], world.jobs, namespace=namespace, today=date(2026, 11, 21))


def text(report: AuditReport) -> list[str]:
    return [click.unstyle(line) for line in report.as_text()]


def test_jobs_with_the_most_rejections_come_first() -> None:
    report = audited(
        job("small"),
        job("warned", **{"spec.slotsPerWorker": 9}),
        job("large", 4),
        job("larger", 4, "team-b", **{"Launcher.replicas": 2}),
    )
    assert [job.name for job in report.breaking if job.decision.denied] == ["larger", "large"]
    assert (report.total, report.refused) == (4, 2)
    assert next(iter(report.by_rule.items())) == ("worker-count", {"deny": 2})


def test_report_has_each_violation_and_its_fix() -> None:
    lines = text(audited(job("large", 5)))
    assert lines[0] == "policies: p (namespace n of c)"
    assert "team-a/large: would be rejected" in lines
    (violation,) = [line for line in lines if line.startswith("  deny: ") and line.endswith("[worker-count]")]
    assert "spec.mpiReplicaSpecs[Worker].replicas: 5 workers, at most 3 allowed" in violation
    assert lines[-1] == "1 job: 1 would be rejected, 0 would only be reported, 0 valid"


def test_report_without_violations() -> None:
    report = audited(job("small"), policy="")
    assert text(report) == ["policies: p (namespace n of c)", "", "1 job, none to look at"]
    assert report.as_json() == {"policies": ["p"], "jobs": 1, "refused": 0, "byRule": {}, "breaking": []}


def test_ended_jobs_and_jobs_of_other_namespaces_are_left_out() -> None:
    report = audited(job("over", 5, status=ENDED), job("other", 5, "team-b"), job("large", 5), namespace="team-a")
    assert [job.name for job in report.breaking] == ["large"]
    assert report.total == 1


def test_json_has_every_violation() -> None:
    value = audited(job("large", 5)).as_json()
    assert value["refused"] == 1
    assert value["byRule"]["worker-count"] == {"deny": 1}
    (large,) = value["breaking"]
    assert (large["namespace"], large["name"], large["refused"]) == ("team-a", "large", True)
    violation = large["violations"][0]
    assert (violation["rule"], violation["action"]) == ("worker-count", "deny")
    assert violation["fix"] == "Set replicas to 3 or fewer."
    assert json.loads(json.dumps(value)) == value
