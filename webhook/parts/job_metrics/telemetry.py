"""Metrics of jobs. They are exposed at `/metrics/jobs`, not at `/metrics`, because they have namespaces as labels."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry

from webhook.admission.pipelines import Decision
from webhook.client.live_view import LiveView
from webhook.client.store import Kind, Store, by_namespace
from webhook.client.watch import Watch
from webhook.cluster.job_lives import REASONS, JobLife, job_life
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import Answer
from webhook.parts.job_metrics.happenings import Changes, standing
from webhook.parts.job_metrics.metrics import JOB_METRICS
from webhook.server.limits import MAX_NAMESPACE_LABELS
from webhook.server.metrics import MetricSet, Value
from webhook.server.namespace_labels import BEYOND, Labels, of_now

JOB_LIVES: Final[Kind[ByNamespace, JobLife]] = Kind(
    "job-lives", MPI_JOBS.path(MPI_JOBS.api_versions[0]), key=by_namespace, project=job_life
)


class JobTelemetry:
    """The metrics of jobs."""

    def __init__(self, registry: CollectorRegistry, view: LiveView) -> None:
        self._metrics = MetricSet(JOB_METRICS, registry)
        self._view = view
        self._judged = Labels(MAX_NAMESPACE_LABELS)
        self._changed_in = Labels(MAX_NAMESPACE_LABELS)
        self._changes: Changes | None = None

    def follow(self, lives: Watch[ByNamespace, JobLife]) -> None:
        """Count existing jobs, and changes of jobs after the first list."""
        lives.store.on_change(self._changed)
        lives.store.on_list(partial(self._listed, lives.store))
        self._metrics.on_scrape(partial(_standing, lives, self._view))

    def _listed(self, lives: Store[ByNamespace, JobLife]) -> None:
        if self._changes is None:
            self._changes = Changes(lives.records.values())
            # Sorted so that all replicas name the same namespaces if there are too many.
            for namespace in sorted({job.namespace for job in lives.records.values()}):
                self._begin(self._changed_in.bounded(namespace))

    def _begin(self, namespace: str) -> None:
        self._metrics.add("created_total", namespace, amount=0)
        self._metrics.add("succeeded_total", namespace, amount=0)
        for reason in REASONS:
            self._metrics.add("failed_total", namespace, reason, amount=0)

    def _changed(self, _: ByNamespace, old: JobLife | None, new: JobLife | None) -> None:
        for change in self._changes.of(old, new) if self._changes is not None else ():
            namespace = self._changed_in.bounded(change.namespace)
            self._begin(namespace)
            if change.seconds is None:
                self._metrics.add(change.metric, namespace, *change.reason)
            else:
                self._metrics.observe(change.metric, change.seconds, namespace)

    def decided(self, namespace: str, decision: Decision) -> None:
        """Counts a decision. Namespaces that do not exist share one label: a client may send any text as namespace."""
        if decision.skipped:
            return
        existing = self._view.get(NAMESPACES, namespace)
        label = BEYOND if isinstance(existing, Answer) else self._judged.bounded(namespace)
        self._metrics.add("namespace_reviews_total", label, "allowed" if decision.allowed else "denied")
        for action, finding in decision.findings:
            self._metrics.add("namespace_rule_results_total", label, finding.rule, action)

    def deadlines(self, remaining: Callable[[], Iterable[tuple[str, float]]]) -> None:
        """`remaining` yields the namespace and the remaining seconds of each job."""
        self._metrics.on_scrape(partial(_remaining, remaining))


def _standing(lives: Watch[ByNamespace, JobLife], view: LiveView) -> Iterator[Value]:
    pods = view.all(MPI_JOBS)
    if lives.known and not isinstance(pods, Answer):
        jobs = list(lives.store.records.values())  # a copy: scrapes run in another thread
        counts = standing(jobs, pods, view, namespaces=of_now(job.namespace for job in jobs))
        yield from ((name, (*labels,), value) for (name, *labels), value in counts.items())


def _remaining(remaining: Callable[[], Iterable[tuple[str, float]]]) -> Iterator[Value]:
    shortest: dict[str, float] = {}
    jobs = list(remaining())
    namespaces = of_now(namespace for namespace, _ in jobs)
    for namespace, seconds in jobs:
        label = namespaces.bounded(namespace)
        shortest[label] = min(seconds, shortest.get(label, seconds))
    yield from (("deadline_remaining_seconds", (label,), seconds) for label, seconds in shortest.items())
