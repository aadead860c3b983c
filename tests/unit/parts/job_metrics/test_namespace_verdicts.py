"""Verdicts by namespace: reported with job metrics, and for a limited number of namespaces."""

from datetime import date
from typing import Any

import pytest
from prometheus_client import generate_latest

from tests.support import jobs
from tests.support.job_lives import Seen
from webhook.admission import pipelines
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import ABSENT, UNKNOWN, NothingKnown
from webhook.parts.job_metrics.telemetry import JobTelemetry
from webhook.parts.job_metrics.watches import JOB_LIVES
from webhook.server.limits import MAX_NAMESPACE_LABELS
from webhook.server.metrics import PREFIX
from webhook.server.namespace_labels import BEYOND
from webhook.server.telemetry import Telemetry

POLICY = pipelines.load_policy(None)


class Teams(NothingKnown):
    """A cluster with namespaces named `team-…`, and a namespace whose cache is incomplete."""

    def get(self, resource: object, key: Any) -> Any:
        assert resource is NAMESPACES
        return UNKNOWN if key == "new" else Namespace(key, {}) if key.startswith("team-") else ABSENT


@pytest.fixture
def telemetry() -> Telemetry:
    found = Telemetry()
    counted = JobTelemetry(found.job_registry)
    found.on_validated.append(counted.decided)
    counted.follow(Seen(JOB_LIVES), Teams())  # type: ignore[arg-type]  # they have what is asked
    return found


def review(telemetry: Telemetry, namespace: str, workers: int = 4, **fields: object) -> None:
    job = jobs.changed({"Worker.replicas": workers, "metadata.namespace": namespace})
    request = jobs.request(job, **{"namespace": namespace, **fields})
    decision = pipelines.validate(request, policy=POLICY, view=NothingKnown(), today=date.min)
    telemetry.decided("validate", request, decision, 0.001)


def value(telemetry: Telemetry, name: str, **labels: str) -> float | None:
    return telemetry.job_registry.get_sample_value(f"{PREFIX}namespace_{name}_total", labels)


def test_a_verdict_counts_for_its_namespace(telemetry: Telemetry) -> None:
    review(telemetry, "team-a", workers=1)
    review(telemetry, "team-a")
    review(telemetry, "team-b")
    review(telemetry, "team-b", dryRun=True)
    assert value(telemetry, "reviews", namespace="team-a", decision="denied") == 1
    assert value(telemetry, "reviews", namespace="team-a", decision="allowed") == 1
    assert value(telemetry, "reviews", namespace="team-b", decision="allowed") == 1
    assert value(telemetry, "rule_results", namespace="team-a", rule="worker-count", action="deny") == 1
    assert value(telemetry, "rule_results", namespace="team-b", rule="worker-count", action="deny") is None


def test_names_of_namespaces_are_few(telemetry: Telemetry) -> None:
    for number in range(MAX_NAMESPACE_LABELS + 2):
        review(telemetry, f"team-{number}")
    assert value(telemetry, "reviews", namespace=f"team-{MAX_NAMESPACE_LABELS}", decision="allowed") is None
    assert value(telemetry, "reviews", namespace=BEYOND, decision="allowed") == 2


def test_names_that_anyone_may_invent_take_no_room(telemetry: Telemetry) -> None:
    """They took megabytes each, permanently, and the labels of existing namespaces."""
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


def test_without_metrics_of_jobs_no_namespace_is_named() -> None:
    telemetry = Telemetry()
    review(telemetry, "team-a")
    assert b"team-a" not in generate_latest(telemetry.registry) + generate_latest(telemetry.job_registry)
