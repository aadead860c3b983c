"""The metrics at `/metrics/jobs`."""

import re
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.support.job_lives import HOUR, START, Seen, condition, mpijob
from webhook.api.pod_resources import ContainerResources, PodResources
from webhook.api.quantity import parse
from webhook.api.quota_charges import PodShape
from webhook.cluster.job_lives import REASONS
from webhook.cluster.resources.mpijobs import MPIJobRecord, PodsRecord
from webhook.cluster.view import UNKNOWN
from webhook.parts.job_metrics.metrics import JOB_METRICS
from webhook.parts.job_metrics.telemetry import JOB_LIVES, JobTelemetry
from webhook.server.limits import MAX_NAMESPACE_LABELS
from webhook.server.metrics import JOB_PREFIX, METRICS
from webhook.server.namespace_labels import BEYOND

RUNNING = condition("Running", at=START + 60)


class View:
    """A fake of the cluster view. Its jobs are `jobs`."""

    def __init__(self) -> None:
        self.jobs: Any = {}

    def all(self, _: object) -> Any:
        return self.jobs


class World:
    def __init__(self) -> None:
        self.registry, self.lives, self.view = CollectorRegistry(), Seen(JOB_LIVES), View()
        # Fakes with the methods that are called.
        self.telemetry = JobTelemetry(self.registry, self.view)  # type: ignore[arg-type]
        self.telemetry.follow(self.lives)  # type: ignore[arg-type]

    def value(self, name: str, namespace: str = "team-a", **labels: str) -> float | None:
        return self.registry.get_sample_value(JOB_PREFIX + name, {"namespace": namespace, **labels})

    def series(self, name: str) -> list[str]:
        return sorted(re.findall(rf"^{JOB_PREFIX}{name}{{.*", self.text(), re.MULTILINE))

    def text(self) -> str:
        return generate_latest(self.registry).decode()


@pytest.fixture
def world() -> World:
    return World()


def test_changes_after_the_first_list_are_counted(world: World) -> None:
    old = mpijob("old", RUNNING, started=START)
    world.lives.list(old, mpijob("done", condition("Succeeded"), completed=START, namespace="team-b"))
    for namespace in ("team-a", "team-b"):
        assert world.value("created_total", namespace) == world.value("succeeded_total", namespace) == 0
        assert {world.value("failed_total", namespace, reason=reason) for reason in REASONS} == {0}
    world.lives.put(mpijob("new", namespace="team-c"))
    world.lives.put(mpijob("new", RUNNING, namespace="team-c", started=START))
    failed = condition("Failed", reason="DeadlineExceeded")
    world.lives.put(mpijob("new", failed, namespace="team-c", started=START, completed=START + HOUR))
    world.lives.put(mpijob("old", condition("Succeeded"), started=START, completed=START + 2 * HOUR))
    world.lives.remove(old)
    # A list after a lost watch has the same content.
    world.lives.list(mpijob("new", failed, namespace="team-c", started=START, completed=START + HOUR))
    assert world.value("created_total", "team-c") == 1
    assert world.value("created_total") == world.value("created_total", "team-b") == 0
    assert world.value("failed_total", "team-c", reason="DeadlineExceeded") == 1
    assert world.value("succeeded_total") == 1
    assert world.value("duration_seconds_sum") == 2 * HOUR
    assert world.value("duration_seconds_bucket", "team-c", le="3600.0") == 1
    assert world.value("queue_seconds_sum", "team-c") == 60
    assert world.value("queue_seconds_count") is None


def record(name: str, gpus: int) -> MPIJobRecord:
    requests = {"nvidia.com/gpu": parse(gpus)}
    shape = PodShape(PodResources((ContainerResources("spec.containers[0]", requests=requests),)))
    return MPIJobRecord("team-a", name, f"uid-{name}", pods=(PodsRecord("Worker", 4, shape),))


def test_existing_jobs_are_counted_while_they_can_be_read(world: World) -> None:
    world.lives.list(mpijob("runs", RUNNING), mpijob("waits", suspend=True), mpijob("over", condition("Failed")))
    world.view.jobs = {("team-a", name): record(name, 8) for name in ("runs", "waits")}
    assert (world.value("running"), world.value("queued")) == (1, 2)
    assert world.value("gpus_requested", resource="nvidia.com/gpu") == 64
    assert world.value("gpus_in_use", resource="nvidia.com/gpu") == 32
    world.lives.known = False
    assert world.value("running") is None
    world.lives.known, world.view.jobs = True, UNKNOWN
    assert world.value("running") is None


def test_shortest_remaining_time_is_reported(world: World) -> None:
    world.telemetry.deadlines(lambda: [("team-a", 50.0), ("team-b", 7.0), ("team-a", 20.0)])
    assert world.value("deadline_remaining_seconds") == 20
    assert world.value("deadline_remaining_seconds", "team-b") == 7


def test_number_of_namespaces_in_labels_is_limited(world: World) -> None:
    world.lives.list()
    for number in range(MAX_NAMESPACE_LABELS + 10):
        world.lives.put(mpijob(namespace=f"team-{number}"))
    assert world.value("created_total", BEYOND) == world.value("queued", BEYOND) == 10
    for metric in ("created_total", "queued"):
        namespaces = set(re.findall(rf'^{JOB_PREFIX}{metric}{{namespace="([^"]+)"', world.text(), re.MULTILINE))
        assert len(namespaces) == MAX_NAMESPACE_LABELS + 1


def test_replicas_with_different_histories_have_the_same_namespaces_in_labels() -> None:
    """BEYOND is the label for all namespaces above the limit.

    If one replica counted a job under BEYOND and a second replica under the namespace's name, the sum over the labels
    would include the job twice.
    """
    jobs = [mpijob(namespace=f"team-{number}") for number in range(MAX_NAMESPACE_LABELS + 10)]
    first, second = World(), World()
    first.lives.list(*jobs[:5])
    for job in reversed(jobs):
        first.lives.put(job)
    second.lives.list(*jobs)
    assert len(first.series("queued")) == MAX_NAMESPACE_LABELS + 1
    assert first.series("queued") == second.series("queued")
    restarted = World()
    restarted.lives.list(*reversed(jobs))
    assert second.series("created_total") == restarted.series("created_total")


def test_every_metric_is_exposed_with_help_and_type(world: World) -> None:
    world.telemetry.deadlines(list)
    text = world.text()
    for metric in JOB_METRICS:
        assert f"# HELP {metric.name} {metric.help}\n" in text
        assert f"# TYPE {metric.name} {metric.kind}\n" in text


@pytest.mark.parametrize("metric", JOB_METRICS, ids=lambda metric: metric.name)
def test_metric_names_follow_prometheus_conventions(metric: Any) -> None:
    assert re.fullmatch(r"(training_operator_mpijob|mpijob_webhook_namespace)_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.help.endswith(".")
    assert set(metric.labels) <= {"namespace", "user", "reason", "resource", "rule", "action", "decision"}
    assert metric.name not in {operational.name for operational in METRICS}
