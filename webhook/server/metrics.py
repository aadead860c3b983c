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
    """A metric as the reference shows it."""

    name: str
    """The name in Prometheus, with the suffix `_total` for a counter."""
    kind: Kind
    labels: tuple[str, ...]
    help: str
    """What is measured, for operators."""
    on_scrape: bool = False
    """Its values are computed on each scrape."""
    buckets: tuple[float, ...] = ()

    @property
    def short(self) -> str:
        """The name without its prefix."""
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
        "Time from a review's headers to its answer, whatever that is, the reading of its body included.",
    ),
    _read_gauge("connections", "Connections to the review port now."),
    _counter(
        "connections_refused_total{reason}",
        "Connections turned away or cut off: full (there were too many), handshake (it failed or took too long), "
        "silent (no whole head came in time), head (it was too large, or not HTTP/1), ahead (more came than one "
        "request with a Content-Length), unread (the client did not read its reply), descriptors (none was left).",
    ),
    _counter(
        "log_lines_dropped_total",
        "Lines of the log that were dropped, the oldest first, because standard error was not read.",
    ),
    _read_gauge("in_flight", "Reviews at work now."),
    _read_gauge("tasks", "asyncio tasks now: if they grow from day to day, some never end."),
    _counter(
        "rule_results_total{rule, action}",
        "Violations found, by rule and by what they led to: deny, warn or audit; without those that only follow from"
        " another one.",
    ),
    _counter(
        "own_rule_faults_total{rule}",
        "Reviews in which a custom rule of the policy could not be evaluated, or took too long, by rule. Its "
        "onError decides about the job; the log and the audit annotation rule-faults show the fault of the policy.",
    ),
    _counter(
        "refused_gpus_total{rule, resource}",
        "GPUs and other accelerators in rejected new jobs, without dry runs. Each job counts once, with the worst of"
        " the rules that rejected it, and again whenever it is tried again; at most 10,000 of a job.",
    ),
    _counter("patch_ops_total{injection}", "Patch operations sent, by injection."),
    _counter(
        "deadline_exceeded_total{webhook}",
        "Reviews given up with 504 because the API server would not have waited for the answer.",
    ),
    _counter(
        "too_expensive_total{webhook}",
        "Jobs, objects and policies that took more processor time than one decision may. See the log for their names.",
    ),
    _counter("internal_errors_total{webhook}", "Reviews answered with 500 because of a fault in this service."),
    _counter(
        "shed_total{webhook}",
        "Reviews refused with 503 because too many similar ones were in progress: large bodies, those that wait for "
        "the cluster or for an SSH key.",
    ),
    _counter(
        "cluster_errors_total{webhook}",
        "Reviews refused with 503 because the cluster did not answer a query that the verdict depends on.",
    ),
    _counter("bad_requests_total{code}", "Requests that are not a review, by status code."),
    _read_gauge("policy_info{hash}", "1 for the policies in force, by a hash of their content."),
    _read_gauge(
        "policy_documents{state}",
        "Policy ConfigMaps by what is in force of them: current, last-good (the newest is broken) or unusable.",
    ),
    _read_gauge(
        "policies_unread",
        "1 while the policy ConfigMaps cannot be read: those read before, the last good ones, or the built-in "
        "defaults are in force; /readyz says which.",
    ),
    _counter("policy_reloads_total{result}", "Reloads of the policy ConfigMaps: good, or broken when one of them is."),
    _counter(
        "conversions_total{version, outcome}",
        "With --conversion, jobs by the requested version: converted, refused (a client sends an invalid job), or"
        " stand-in (a stored object is not a valid job: v2beta1 shows a suspended one without pods).",
    ),
    _counter("policy_reviews_total{decision}", "Reviews of policy ConfigMaps: allowed or denied."),
    _counter("exemptions_total{rule}", "Violations excused by an exemption, by rule."),
    _read_gauge("ssh_keys_ready", "SSH key pairs that are ready for new jobs."),
    _read_gauge("ssh_keys_waiting", "Reviews that wait for an SSH key pair to be made."),
    _histogram(
        "ssh_key_duration_seconds{algorithm}",
        "Time to make an SSH key pair, ahead or on request; its count is the pairs made.",
    ),
    _histogram(
        "ssh_key_wait_seconds{algorithm}",
        "Time that a review waited for its SSH key pair, next to nothing when one was ready.",
    ),
    _read_gauge("cache_synced{kind}", "1 while the cache of this kind of object is complete."),
    _read_gauge(
        "cache_faulty{kind}",
        "1 while this kind of object is unknown because it cannot be read, for example for a missing right; 0 if it"
        " is not installed.",
    ),
    _read_gauge("cache_objects{kind}", "Objects in the cache."),
    _read_gauge("cache_age_seconds{kind}", "Seconds since the cache of this kind was last complete."),
    _read_counter(
        "cache_unknown_answers_total{kind}",
        "How often a rule queried this kind and the answer was unknown; such a rule does not deny.",
    ),
    _read_counter("cache_requests_total{kind}", "Lists and watches sent to the API server."),
    _read_counter("cache_restarts_total{kind, reason}", "Lists and watches that ended, and why."),
    _gauge(
        "cert_expiry_timestamp_seconds{cert}",
        "When a certificate expires, in seconds since 1970: serving, or ca where this service has its own.",
    ),
    _gauge(
        "configuration_concerns{concern}",
        "1 while something is wrong with the webhook configurations or the rights of the service, by its name in "
        "the runbook; checked each minute.",
    ),
    _gauge(
        "ca_bundles_untrusting",
        "Objects with a caBundle that does not trust what is served, with a CA of the service's own: their calls fail.",
    ),
    _counter("cert_notices_total{reason}", "What happened to the certificates, by the reason in the Event about it."),
    _counter(
        "quota_ledger_total{outcome}",
        "Verdicts on quotas shared by all replicas: reserved, not-reserved, full (admitted, not reserved for want"
        " of room), late (504) or unavailable (the verdict is then that of this replica's cache).",
    ),
    _read_counter(
        "companion_reconciles_total{companion, result}",
        "How often a controller reconciled an object: done, or failed and to be retried.",
    ),
    _read_counter(
        "companion_requests_total{companion}", "Calls of the API server by a controller, without lists and watches."
    ),
    _read_gauge(
        "companion_waiting{companion}",
        "Objects that are due for a controller, including those that it is reconciling.",
    ),
    _read_gauge(
        "companion_failing{companion}", "Objects for which the last attempt of a controller failed; it retries."
    ),
    _read_counter(
        "deadline_events_total{outcome}",
        "Notices about the time of jobs: told (this replica made the Event), or known (it existed).",
    ),
    _read_gauge(
        "plugins{plugin, version, state}",
        "1 for each plug-in that is named: in force, or broken (what else it has is in force); /readyz says why.",
    ),
    _read_counter(
        "plugin_failures_total{kind, entry}",
        "How often a plug-in's rule or injection failed in a review, which then went on without it.",
    ),
    _gauge("build_info{version, python}", "1 for the version that runs."),
)
"""Metrics of reviews and of the service, at `/metrics`: no label names a namespace, a user or a job."""


Value = tuple[str, tuple[str, ...], float]
"""The short name of a metric, the values of its labels, and its current value."""

# In this format they would be additional gauges for each counter and histogram: a third more series without a use.
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Children(dict[tuple[str, ...], Any]):
    """A metric's children by label values, made once: each call of `labels()` takes a lock and copies."""

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
        """Add to a counter. An `amount` of 0 starts its series at zero, so that a rate counts the first event too."""
        self._written[name][labels].inc(amount)

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._written[name][labels].set(value)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        self._written[name][labels].observe(value)

    def on_scrape(self, source: Callable[[], Iterable[Value]]) -> None:
        """Read values from `source` on each scrape. The scrape may be in another thread."""
        self._sources.append(source)

    def describe(self) -> Iterator[Family]:
        """The metrics that are computed on a scrape, without values."""
        return (_FAMILIES[metric.kind](metric.name, metric.help, labels=metric.labels) for metric in self._read)

    def collect(self) -> Iterator[Family]:
        """These metrics with their current values."""
        families = {metric.short: family for metric, family in zip(self._read, self.describe(), strict=True)}
        for source in self._sources:
            for name, labels, value in source():
                families[name].add_metric(labels, value)  # type: ignore[attr-defined]
        yield from families.values()
