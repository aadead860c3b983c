"""What `/metrics/jobs` tells of jobs where an option asks for it: by namespace, and for that not in `/metrics`.

Names begin as those that platform documents ask for. A counter is called `_total`, and a gauge is not: recording rules
in manifests/components/monitoring give `_running` and `_queued` that name for those who ask by it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook.admission.pipelines import Decision
from webhook.client.live_view import LiveView
from webhook.client.watch import Watch
from webhook.cluster.job_lives import REASONS, JobLife
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.view import Answer
from webhook.companions.job_metrics import Changes, Counted, Labels, of_now, standing
from webhook.companions.limits import MAX_NAMESPACE_LABELS
from webhook.server.gauges import READ, gauge
from webhook.server.metrics import Metric
from webhook.server.namespace_verdicts import VERDICT_METRICS, NamespaceVerdicts

if TYPE_CHECKING:
    from webhook.companions.audit.standing import StandingAudit

JOB_PREFIX: Final = "training_operator_mpijob_"
HOUR: Final = 3600
RUN_BUCKETS: Final = (60, 600, 1800, HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR, 72 * HOUR, 168 * HOUR)
QUEUE_BUCKETS: Final = (10, 30, 60, 300, 900, HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR, 72 * HOUR)

CREATED: Final = Metric(JOB_PREFIX + "created_total", "counter", ("namespace",), f"MPIJobs that were created. {READ}")
SUCCEEDED: Final = Metric(JOB_PREFIX + "succeeded_total", "counter", ("namespace",), f"MPIJobs that succeeded. {READ}")
FAILED: Final = Metric(
    JOB_PREFIX + "failed_total",
    "counter",
    ("namespace", "reason"),
    "MPIJobs that failed, by why: DeadlineExceeded, BackoffLimitExceeded, MPIJobEvicted, MPIJobFailed or other. "
    + READ,
)
DURATION: Final = Metric(
    JOB_PREFIX + "duration_seconds",
    "histogram",
    ("namespace",),
    f"From the last start or resume of an MPIJob to its end. {READ}",
)
QUEUE: Final = Metric(
    JOB_PREFIX + "queue_seconds",
    "histogram",
    ("namespace",),
    f"From the creation of an MPIJob until all of its pods ran for the first time. {READ}",
)
RUNNING: Final = Metric(JOB_PREFIX + "running", "gauge", ("namespace",), f"MPIJobs of which all pods run. {READ}")
QUEUED: Final = Metric(
    JOB_PREFIX + "queued",
    "gauge",
    ("namespace",),
    f"MPIJobs that have not ended and do not run: they are suspended, or wait for pods. {READ}",
)
REQUESTED: Final = Metric(
    JOB_PREFIX + "gpus_requested",
    "gauge",
    ("namespace", "resource"),
    f"GPUs and other accelerators that MPIJobs ask for which have not ended, queued ones included. {READ}",
)
IN_USE: Final = Metric(
    JOB_PREFIX + "gpus_in_use",
    "gauge",
    ("namespace", "resource"),
    f"GPUs and other accelerators of MPIJobs that run. {READ}",
)
REMAINING: Final = Metric(
    JOB_PREFIX + "deadline_remaining_seconds",
    "gauge",
    ("namespace",),
    "The least time that an MPIJob of the namespace has left before its activeDeadlineSeconds end it; with "
    "--deadline-events. Take the min of the replicas.",
)
JOB_METRICS: Final = (
    CREATED,
    SUCCEEDED,
    FAILED,
    DURATION,
    QUEUE,
    RUNNING,
    QUEUED,
    REQUESTED,
    IN_USE,
    REMAINING,
    *VERDICT_METRICS,
)


class JobTelemetry:
    """The metrics of jobs in a registry of their own; nothing is in it until it is told to begin."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._verdicts: NamespaceVerdicts | None = None

    def follow(self, lives: Watch[ByNamespace, JobLife], view: LiveView) -> None:
        """From now on count what happens to jobs, once all have been seen, and tell how many there are."""
        _Happenings(lives, self.registry)
        self.registry.register(_Standing(lives, view))
        self._verdicts = NamespaceVerdicts(self.registry, view)

    def decided(self, namespace: str, decision: Decision) -> None:
        """Count a verdict, if that was asked for."""
        if self._verdicts is not None:
            self._verdicts.count(namespace, decision)

    def deadlines(self, remaining: Callable[[], Iterable[tuple[str, float]]]) -> None:
        """From now on ask for the namespaces of jobs, and the seconds that each job has left."""
        self.registry.register(_Remaining(remaining))

    def audit(self, audit: "StandingAudit") -> None:
        """From now on ask for the rules that jobs break."""
        from webhook.server.audit_telemetry import AuditCollector  # noqa: PLC0415 - most services run no audit

        self.registry.register(AuditCollector(audit))


class _Happenings:
    """Counters and histograms."""

    def __init__(self, lives: Watch[ByNamespace, JobLife], registry: CollectorRegistry) -> None:
        self._lives = lives
        self._namespaces = Labels(MAX_NAMESPACE_LABELS)
        self._changes: Changes | None = None
        self._counters = {
            what: Counter(metric.name, metric.help, metric.labels, registry=registry)
            for what, metric in (("created", CREATED), ("succeeded", SUCCEEDED), ("failed", FAILED))
        }
        self._histograms = {
            what: Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=buckets)
            for what, metric, buckets in (("duration", DURATION, RUN_BUCKETS), ("queue", QUEUE, QUEUE_BUCKETS))
        }
        lives.store.on_change(self._changed)
        lives.store.on_list(self._listed)

    def _listed(self) -> None:
        if self._changes is None:
            self._changes = Changes(self._lives.store.records.values())
            # In the same order on every replica: where there are too many, all leave out the same.
            for namespace in sorted({job.namespace for job in self._lives.store.records.values()}):
                self._begin(self._namespaces.bounded(namespace))

    def _begin(self, namespace: str) -> None:
        """Expose what is counted there from 0 on: a rate has no first step where there was no series."""
        self._counters["created"].labels(namespace)
        self._counters["succeeded"].labels(namespace)
        for reason in REASONS:
            self._counters["failed"].labels(namespace, reason)

    def _changed(self, key: ByNamespace, old: JobLife | None, new: JobLife | None) -> None:
        for each in self._changes.of(old, new) if self._changes is not None else ():
            self._count(each)

    def _count(self, counted: Counted) -> None:
        namespace = self._namespaces.bounded(counted.namespace)
        self._begin(namespace)
        if counted.what in self._histograms:
            self._histograms[counted.what].labels(namespace).observe(counted.seconds)
        elif counted.what == "failed":
            self._counters["failed"].labels(namespace, counted.reason).inc()
        else:
            self._counters[counted.what].labels(namespace).inc()


class _Standing(Collector):
    """Gauges, worked out whenever they are read, of a copy since another thread does. None while jobs are unknown."""

    def __init__(self, lives: Watch[ByNamespace, JobLife], view: LiveView) -> None:
        self._lives = lives
        self._view = view

    def describe(self) -> list[GaugeMetricFamily]:
        """The metrics without values."""
        return [*map(gauge, (RUNNING, QUEUED, REQUESTED, IN_USE))]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics with the values of now."""
        pods = self._view.all(MPI_JOBS)
        if not self._lives.known or isinstance(pods, Answer):
            yield from self.describe()
            return
        jobs = list(self._lives.store.records.values())
        found = standing(jobs, pods, self._view, namespaces=of_now(job.namespace for job in jobs))
        for metric, by_namespace in ((RUNNING, found.running), (QUEUED, found.queued)):
            yield gauge(metric, {(namespace,): count for namespace, count in by_namespace.items()})
        yield gauge(REQUESTED, found.requested)
        yield gauge(IN_USE, found.in_use)


class _Remaining(Collector):
    """The time that is left, worked out whenever it is read."""

    def __init__(self, remaining: Callable[[], Iterable[tuple[str, float]]]) -> None:
        self._remaining = remaining

    def describe(self) -> list[GaugeMetricFamily]:
        """The metric without values."""
        return [gauge(REMAINING)]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The least of each namespace."""
        least: dict[tuple[str, ...], float] = {}
        remaining = list(self._remaining())
        namespaces = of_now(namespace for namespace, _ in remaining)
        for namespace, seconds in remaining:
            label = (namespaces.bounded(namespace),)
            least[label] = min(seconds, least.get(label, seconds))
        yield gauge(REMAINING, least)
