"""Metrics of verdicts by namespace: exposed only with --job-metrics, for a limited number of namespaces."""

from datetime import date
from typing import Any

import pytest
from prometheus_client import generate_latest

from tests.support import jobs
from webhook.admission import pipelines
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import ABSENT, UNKNOWN, NothingKnown
from webhook.parts.job_metrics.telemetry import JobTelemetry
from webhook.server.limits import MAX_NAMESPACE_LABELS
from webhook.server.metrics import PREFIX
from webhook.server.namespace_labels import BEYOND
from webhook.server.telemetry import Telemetry

POLICY = pipelines.load_policy(None)


class Teams(NothingKnown):
    """A cluster with the namespaces `team-…`. It is unknown whether the namespace `new` exists."""

    def get(self, resource: object, key: Any) -> Any:
        assert resource is NAMESPACES
        return UNKNOWN if key == "new" else Namespace(key, {}) if key.startswith("team-") else ABSENT


@pytest.fixture
def telemetry() -> Telemetry:
    server = Telemetry()
    job_telemetry = JobTelemetry(server.job_registry, Teams())  # type: ignore[arg-type]  # a fake with `get`
    server.on_validated.append(job_telemetry.decided)
    return server


def review(telemetry: Telemetry, namespace: str, workers: int = 4, **fields: object) -> None:
    job = jobs.changed({"Worker.replicas": workers, "metadata.namespace": namespace})
    request = jobs.request(job, **{"namespace": namespace, **fields})
    decision = pipelines.validate(request, policy=POLICY, view=NothingKnown(), today=date.min)
    telemetry.decided("validate", request, decision, 0.001)


def value(telemetry: Telemetry, name: str, **labels: str) -> float | None:
    return telemetry.job_registry.get_sample_value(f"{PREFIX}namespace_{name}_total", labels)


def test_verdict_is_counted_for_its_namespace_except_in_dry_runs(telemetry: Telemetry) -> None:
    review(telemetry, "team-a", workers=1)
    review(telemetry, "team-a")
    review(telemetry, "team-b")
    review(telemetry, "team-b", dryRun=True)
    assert value(telemetry, "reviews", namespace="team-a", decision="denied") == 1
    assert value(telemetry, "reviews", namespace="team-a", decision="allowed") == 1
    assert value(telemetry, "reviews", namespace="team-b", decision="allowed") == 1
    assert value(telemetry, "rule_results", namespace="team-a", rule="worker-count", action="deny") == 1
    assert value(telemetry, "rule_results", namespace="team-b", rule="worker-count", action="deny") is None


def test_number_of_namespaces_in_labels_is_limited(telemetry: Telemetry) -> None:
    for number in range(MAX_NAMESPACE_LABELS + 2):
        review(telemetry, f"team-{number}")
    assert value(telemetry, "reviews", namespace=f"team-{MAX_NAMESPACE_LABELS}", decision="allowed") is None
    assert value(telemetry, "reviews", namespace=BEYOND, decision="allowed") == 2


def test_namespace_that_does_not_exist_gets_no_label(telemetry: Telemetry) -> None:
    """Otherwise a client could fill the memory with long names, and use up the labels for existing namespaces."""
    for number in range(MAX_NAMESPACE_LABELS):
        review(telemetry, f"invented-{number}" * 1000)
    review(telemetry, "new")
    review(telemetry, "team-a")
    assert value(telemetry, "reviews", namespace="team-a", decision="allowed") == 1
    assert value(telemetry, "reviews", namespace=BEYOND, decision="allowed") == MAX_NAMESPACE_LABELS + 1
    assert b"new" not in generate_latest(telemetry.job_registry)
    assert len(generate_latest(telemetry.job_registry)) < 10_000


def test_review_without_a_verdict_is_not_counted(telemetry: Telemetry) -> None:
    review(telemetry, "team-a", operation="DELETE")
    request = jobs.request(jobs.GOOD, namespace="team-a")
    telemetry.decided("validate", request, pipelines.Decision(skipped="not an MPIJob"), 0.001)
    assert b"team-a" not in generate_latest(telemetry.job_registry)


def test_metrics_contain_no_namespaces_without_the_option() -> None:
    telemetry = Telemetry()
    review(telemetry, "team-a")
    assert b"team-a" not in generate_latest(telemetry.registry) + generate_latest(telemetry.job_registry)
