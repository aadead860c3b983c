"""The metrics: their names, labels and meaning. The reference is generated from these tables."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

Kind = Literal["counter", "gauge", "histogram"]

PREFIX: Final = "mpijob_webhook_"
JOB_PREFIX: Final = "training_operator_mpijob_"
# Seconds. The API server waits at most 30, and a review takes about a millisecond.
_REVIEW_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
READ: Final = "The same on every replica: take the max, never the sum."


@dataclass(frozen=True, slots=True)
class Metric:
    """The description of a metric."""

    name: str
    """The name in Prometheus, with the suffix `_total` for a counter."""
    kind: Kind
    labels: tuple[str, ...]
    help: str
    """Help for administrators, who read it without context."""
    on_scrape: bool = False
    """True if the values are computed on each scrape."""
    buckets: tuple[float, ...] = ()

    @property
    def short(self) -> str:
        return self.name.removeprefix(PREFIX).removeprefix(JOB_PREFIX)


def metric(
    kind: Kind,
    name: str,
    text: str,
    *,
    prefix: str = PREFIX,
    on_scrape: bool = False,
    buckets: tuple[float, ...] = _REVIEW_BUCKETS,
) -> Metric:
    """`name` ends with the labels in braces."""
    name, _, labels = name.rstrip("}").partition("{")
    return Metric(prefix + name, kind, tuple(labels.split(", ")) if labels else (), text, on_scrape, buckets)


_counter = partial(metric, "counter")
_gauge = partial(metric, "gauge")
_histogram = partial(metric, "histogram")
_read_counter = partial(metric, "counter", on_scrape=True)
_read_gauge = partial(metric, "gauge", on_scrape=True)


METRICS: Final = (
    _counter(
        "reviews_total{webhook, operation, decision, dry_run}", "Reviews answered with a decision: allowed or denied."
    ),
    _histogram(
        "review_duration_seconds{webhook}",
        "Seconds from a review's headers to its reply of any kind, including the time to read its body.",
    ),
    _read_gauge("connections", "Connections to the review port now."),
    _counter(
        "connections_refused_total{reason}",
        "Connections rejected or closed, by reason: full (too many), handshake (failed or took too long), "
        "silent (no complete head in time), head (too large, or not HTTP/1), ahead (the client sent more than one "
        "request with a Content-Length), unread (the client did not read its reply), descriptors (none was free).",
    ),
    _counter(
        "log_lines_dropped_total",
        "Lines of the log that were dropped, the oldest first, because standard error was not read.",
    ),
    _read_gauge("in_flight", "Reviews in progress now."),
    _read_gauge("tasks", "asyncio tasks now; a number that grows from day to day means that some never end."),
    _counter(
        "rule_results_total{rule, action}",
        "Violations, by rule and action: deny, warn or audit; without violations that only follow from another"
        " violation.",
    ),
    _counter(
        "own_rule_faults_total{rule}",
        "Reviews in which a custom rule of the policy could not be evaluated, or took too long, by rule. The rule's "
        "onError decides about the job; the log and the audit annotation rule-faults show the error.",
    ),
    _counter(
        "refused_gpus_total{rule, resource}",
        "GPUs and other accelerators in rejected new jobs, without dry runs. Each attempt to create a job is counted"
        " once, under the worst of the rules that rejected it, with at most 10,000 GPUs.",
    ),
    _counter("patch_ops_total{injection}", "Patch operations sent, by injection."),
    _counter(
        "deadline_exceeded_total{webhook}",
        "Reviews answered with 504 because the API server would not have waited for the decision.",
    ),
    _counter(
        "too_expensive_total{webhook}",
        "Jobs, objects and policies that took more processor time than the limit for one decision; the log names them.",
    ),
    _counter("internal_errors_total{webhook}", "Reviews answered with 500 because of a fault in this service."),
    _counter(
        "shed_total{webhook}",
        "Reviews answered with 503 because too many of their kind were in progress: reviews with large bodies, or "
        "that wait for the cluster or an SSH key.",
    ),
    _counter(
        "cluster_errors_total{webhook}",
        "Reviews answered with 503 because the cluster did not answer a query that the verdict depends on.",
    ),
    _counter("bad_requests_total{code}", "Requests that are not a review, by status code."),
    _read_gauge("policy_info{hash}", "1 for the policies in force, by a hash of their content."),
    _read_gauge(
        "policy_documents{state}",
        "Policy ConfigMaps by the version in force: current, last-good (the newest is broken) or unusable (none).",
    ),
    _read_gauge(
        "policies_unread",
        "1 while the policy ConfigMaps cannot be read. The policies read earlier, the last good ones, or the built-in "
        "defaults are then in force; /readyz says which.",
    ),
    _counter("policy_reloads_total{result}", "Reloads of the policy ConfigMaps: good, or broken if any of them is."),
    _counter(
        "conversions_total{version, outcome}",
        "With --conversion, jobs by the requested version: converted, refused (a client sends an invalid job), or"
        " stand-in (a stored object is not a valid job: v2beta1 shows a suspended one without pods).",
    ),
    _counter("policy_reviews_total{decision}", "Reviews of policy ConfigMaps: allowed or denied."),
    _counter("exemptions_total{rule}", "Violations excused by an exemption, by rule."),
    _read_gauge("ssh_keys_ready", "Spare SSH key pairs for new jobs."),
    _read_gauge("ssh_keys_waiting", "Reviews that wait for a new SSH key pair."),
    _histogram(
        "ssh_key_duration_seconds{algorithm}",
        "Seconds to make an SSH key pair, ahead or on request.",
    ),
    _histogram(
        "ssh_key_wait_seconds{algorithm}",
        "Seconds that a review waited for its SSH key pair; almost 0 if a spare pair existed.",
    ),
    _read_gauge("cache_synced{kind}", "1 while the cache of this kind of object is complete."),
    _read_gauge(
        "cache_faulty{kind}",
        "1 while this kind of object cannot be read, for example because of a missing permission; 0 if the kind is"
        " not installed.",
    ),
    _read_gauge("cache_objects{kind}", "Objects in the cache."),
    _read_gauge("cache_age_seconds{kind}", "Seconds since the cache of this kind was last complete."),
    _read_counter(
        "cache_unknown_answers_total{kind}",
        "Queries for this kind of object, by rules, that had no answer. A rule without an answer does not deny.",
    ),
    _read_counter("cache_requests_total{kind}", "Lists and watches sent to the API server."),
    _read_counter("cache_restarts_total{kind, reason}", "Lists and watches that ended, by reason."),
    _gauge(
        "cert_expiry_timestamp_seconds{cert}",
        "Expiry of a certificate in seconds since 1970: serving, or ca if the service has its own CA.",
    ),
    _gauge(
        "configuration_concerns{concern}",
        "1 while the webhook configurations or the service's permissions have this problem, by its name in the "
        "runbook; checked each minute.",
    ),
    _gauge(
        "ca_bundles_untrusting",
        "Objects with a caBundle that does not trust the served certificate, if the service has its own CA: their "
        "calls fail.",
    ),
    _counter("cert_notices_total{reason}", "Changes and problems of certificates, by the reason in the Event."),
    _counter(
        "quota_ledger_total{outcome}",
        "Verdicts on quotas with the reservations of all replicas: reserved, not-reserved, full (admitted, but there"
        " was no room to reserve), late (504) or unavailable (this replica's cache decided).",
    ),
    _read_counter(
        "companion_reconciles_total{companion, result}",
        "Objects that a controller reconciled, by result: done, or failed and to be retried.",
    ),
    _read_counter(
        "companion_requests_total{companion}", "Requests of a controller to the API server, without lists and watches."
    ),
    _read_gauge(
        "companion_waiting{companion}",
        "Objects that wait for a controller, including those that it is reconciling.",
    ),
    _read_gauge(
        "companion_failing{companion}", "Objects that a controller failed to reconcile in its last attempt; it retries."
    ),
    _read_counter(
        "deadline_events_total{outcome}",
        "Events about the time limits of jobs: told (created by this replica), or known (already existed).",
    ),
    _read_gauge(
        "plugins{plugin, version, state}",
        "1 for each named plug-in, by state: in force, or broken (its other parts are in force); /readyz says why.",
    ),
    _read_counter(
        "plugin_failures_total{kind, entry}",
        "Failures of a plug-in's rule or injection in a review, which then continued without it.",
    ),
    _gauge("build_info{version, python}", "1, with the running version as a label."),
)
"""The metrics at `/metrics`. No label names a namespace, a user or a job."""


Value = tuple[str, tuple[str, ...], float]
"""The short name of a metric, the values of its labels, and its current value."""

# Creation times would add a gauge to each counter and histogram, and no query needs them.
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Children(dict[tuple[str, ...], Any]):
    """Caches a metric's children by label values, because `labels()` takes a lock and copies."""

    def __init__(self, metric: Metric, registry: CollectorRegistry) -> None:
        super().__init__()
        if metric.kind == "histogram":
            self._metric: Any = Histogram(
                metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets
            )
        else:
            self._metric = _KINDS[metric.kind](metric.name, metric.help, metric.labels, registry=registry)

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        child = self[labels] = self._metric.labels(*labels) if labels else self._metric
        return child


_KINDS: Final[dict[str, Any]] = {"counter": Counter, "gauge": Gauge}
_FAMILIES: Final[dict[str, Any]] = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}


class MetricSet(Collector):
    """The metrics of a table, by their short names."""

    def __init__(self, metrics: Iterable[Metric], registry: CollectorRegistry) -> None:
        self._read = [metric for metric in metrics if metric.on_scrape]
        self._written = {metric.short: _Children(metric, registry) for metric in metrics if not metric.on_scrape}
        self._sources: list[Callable[[], Iterable[Value]]] = []
        registry.register(self)

    def add(self, name: str, *labels: str, amount: float = 1) -> None:
        """An `amount` of 0 starts the series at zero, so that a rate counts the first event too."""
        self._written[name][labels].inc(amount)

    def set(self, name: str, value: float, *labels: str) -> None:
        self._written[name][labels].set(value)

    def observe(self, name: str, value: float, *labels: str) -> None:
        self._written[name][labels].observe(value)

    def on_scrape(self, source: Callable[[], Iterable[Value]]) -> None:
        """Read values from `source` on each scrape, perhaps in a different thread."""
        self._sources.append(source)

    def describe(self) -> Iterator[Family]:
        return (_FAMILIES[metric.kind](metric.name, metric.help, labels=metric.labels) for metric in self._read)

    def collect(self) -> Iterator[Family]:
        families = {metric.short: family for metric, family in zip(self._read, self.describe(), strict=True)}
        for source in self._sources:
            for name, labels, value in source():
                families[name].add_metric(labels, value)  # type: ignore[attr-defined]
        yield from families.values()
