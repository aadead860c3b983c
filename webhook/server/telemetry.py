"""What operators see: Prometheus metrics, and JSON logs with one line for each decision.

No metric of `/metrics` has a namespace, user or job name as label: the number of series would grow with the cluster.
Those of `/metrics/jobs` (`job_telemetry`) have the namespace, as far as a bound. Log lines have
them as fields of limited length. No log line has an object, a value out of one, or the text of an exception.
"""

import platform
import sys
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import product
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics

from webhook import __version__
from webhook.admission.messages import Finding
from webhook.admission.pipelines import Decision
from webhook.api.review import AdmissionRequest, AdmissionResponse
from webhook.client import wire
from webhook.client.watch import Watch
from webhook.companions.companion import Companion
from webhook.companions.paced import PacedClient
from webhook.companions.reservations.ledger import OUTCOMES
from webhook.server import requests
from webhook.server.asked_counter import AskedCounter
from webhook.server.connections import REASONS
from webhook.server.job_telemetry import JobTelemetry
from webhook.server.limits import MAX_LOGGED_CHARACTERS
from webhook.server.log import DecisionLine, describe, make_log
from webhook.server.metrics import BUCKETS, METRICS, PREFIX, Metric
from webhook.server.own_rule_faults import OwnRuleFaults
from webhook.server.plugin_telemetry import PluginTelemetry
from webhook.server.refusal_log import Refusal, RefusalLog

# In this format they would be gauges beside each counter and histogram: a third more series, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Children(dict[tuple[str, ...], Any]):
    """A metric's children by label values, made once: each call of `labels()` takes a lock and copies."""

    def __init__(self, metric: Any) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        child = self[labels] = self._metric.labels(*labels)
        return child


class Telemetry:
    """The metrics in a registry of their own, and the log."""

    def __init__(self, log: Any = None) -> None:
        self.log = log or make_log(sys.stderr.buffer)
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        made = {metric.name.removeprefix(PREFIX): _make(metric, self.registry) for metric in METRICS}
        self._reviews = Children(made["reviews_total"])
        self._durations = Children(made["review_duration_seconds"])
        self._rule_results = Children(made["rule_results_total"])
        self.own_rule_faults = OwnRuleFaults(self.log, made["own_rule_faults_total"])
        self._refused_gpus = Children(made["refused_gpus_total"])
        self._patch_ops = Children(made["patch_ops_total"])
        self._deadline_exceeded: Counter = made["deadline_exceeded_total"]
        self._too_expensive: Counter = made["too_expensive_total"]
        self._internal_errors: Counter = made["internal_errors_total"]
        self._shed: Counter = made["shed_total"]
        self.connections: Gauge = made["connections"]
        self.connections_refused: Counter = made["connections_refused_total"]
        self.log_lines_dropped: Counter = made["log_lines_dropped_total"]
        self._cluster_errors: Counter = made["cluster_errors_total"]
        self._bad_requests: Counter = made["bad_requests_total"]
        self.in_flight: Gauge = made["in_flight"]
        self.tasks: Gauge = made["tasks"]
        self.cert_not_after: Gauge = made["cert_expiry_timestamp_seconds"]
        self.ca_bundles_untrusting: Gauge = made["ca_bundles_untrusting"]
        self.cert_notices: Counter = made["cert_notices_total"]
        self.configuration_concerns: Gauge = made["configuration_concerns"]
        self.quota_ledger: Counter = made["quota_ledger_total"]
        self._policy_info: Gauge = made["policy_info"]
        self._policy_documents: Gauge = made["policy_documents"]
        self._policies_unread: Gauge = made["policies_unread"]
        self._policy_reloads: Counter = made["policy_reloads_total"]
        self._policy_reviews: Counter = made["policy_reviews_total"]
        self._conversions = Children(made["conversions_total"])
        self._exemptions = Children(made["exemptions_total"])
        self._key_durations = Children(made["ssh_key_duration_seconds"])
        self._key_waits = Children(made["ssh_key_wait_seconds"])
        self._keys: tuple[Gauge, Gauge] = made["ssh_keys_ready"], made["ssh_keys_waiting"]
        self._caches = {name: made[name] for name in made if name.startswith("cache_")}
        self._companions = {name: made[name] for name in made if name.startswith("companion_")}
        self._deadline_events: AskedCounter = made["deadline_events_total"]
        self.plugins = PluginTelemetry(made["plugins"], made["plugin_failures_total"], self.log)
        self.jobs = JobTelemetry()
        self._refusals = RefusalLog(self.log)
        self._begin()
        made["build_info"].labels(__version__, platform.python_version()).set(1)

    def _begin(self) -> None:
        """Expose what alerts ask about from the start: a rate has no first step where there was no series."""
        by_hook = (
            self._shed,
            self._cluster_errors,
            self._deadline_exceeded,
            self._too_expensive,
            self._internal_errors,
        )
        for counter, hook in product(by_hook, requests.HOOKS.values()):
            counter.labels(hook)
        for outcome in OUTCOMES:
            self.quota_ledger.labels(outcome)
        for reason in REASONS:
            self.connections_refused.labels(reason)

    def policies_in_force(self, digest: str, states: Iterable[str] = (), *, own_rules: Iterable[str] = ()) -> None:
        """Report the policies that are now in force: their hash, the `states` of their ConfigMaps, their own rules."""
        self._policy_info.clear()
        self._policy_info.labels(digest).set(1)
        counts = Counted(states)
        for state in ("current", "last-good", "unusable"):
            self._policy_documents.labels(state).set(counts[state])
        broken = counts.total() > counts["current"]
        self._policy_reloads.labels("broken" if broken else "good").inc()
        self.own_rule_faults.follow(own_rules)
        self.log.info("policies in force", hash=digest, documents=dict(counts))

    def policy_reviewed(self, request: AdmissionRequest, name: str, response: AdmissionResponse) -> None:
        """Count and log the review of a policy ConfigMap."""
        self._policy_reviews.labels("allowed" if response.allowed else "denied").inc()
        self.log.info(
            "policy review",
            uid=request.uid[:MAX_LOGGED_CHARACTERS],
            operation=request.operation,
            configmap=name[:MAX_LOGGED_CHARACTERS],
            user=request.user_info.username[:MAX_LOGGED_CHARACTERS],
            allowed=response.allowed,
            warnings=response.warnings,
        )

    def converted(self, version: str, outcomes: Mapping[str, int], seconds: float) -> None:
        """Count the jobs of a conversion by what became of them."""
        self._durations["convert",].observe(seconds)
        for outcome, number in outcomes.items():
            self._conversions[version, outcome].inc(number)

    def keys(self, *, ready: Callable[[], float], waiting: Callable[[], float]) -> None:
        """From now on ask `ready` and `waiting` for the number of SSH keys whenever the metrics are read."""
        self._keys[0].set_function(ready)
        self._keys[1].set_function(waiting)

    def key_made(self, algorithm: str, seconds: float) -> None:
        """Count an SSH key pair, and the time it took to make."""
        self._key_durations[algorithm,].observe(seconds)

    def key_waited(self, algorithm: str, seconds: float) -> None:
        """Count a review that needed an SSH key pair, and the time it waited for it."""
        self._key_waits[algorithm,].observe(seconds)

    def companion(self, companion: Companion, api: PacedClient) -> None:
        """From now on ask a companion how it does whenever the metrics are read."""
        name = companion.name
        for result in companion.results:
            value = partial(companion.results.__getitem__, result)
            self._companions["companion_reconciles_total"].ask(name, result, value=value)
        self._companions["companion_requests_total"].ask(name, value=lambda: api.requests)
        self._companions["companion_waiting"].labels(name).set_function(lambda: companion.waiting)
        self._companions["companion_failing"].labels(name).set_function(lambda: companion.failing)

    def deadline_events(self, outcomes: Mapping[str, int]) -> None:
        """From now on ask `outcomes` how often which came whenever the metrics are read."""
        for outcome in outcomes:
            self._deadline_events.ask(outcome, value=partial(outcomes.__getitem__, outcome))

    def caches(self, watches: Iterable[Watch[Any, Any]]) -> None:
        """From now on ask these caches for their state whenever the metrics are read."""
        for watch in watches:
            kind = watch.kind.name
            self._caches["cache_synced"].labels(kind).set_function(lambda watch=watch: float(watch.synced))
            self._caches["cache_objects"].labels(kind).set_function(lambda watch=watch: len(watch))
            self._caches["cache_age_seconds"].labels(kind).set_function(lambda watch=watch: watch.age)
            self._caches["cache_requests_total"].ask(kind, value=lambda watch=watch: watch.requests)
            for reason in wire.FaultReason:
                value = partial(watch.restarts.__getitem__, reason)
                self._caches["cache_restarts_total"].ask(kind, reason, value=value)

    def faults(
        self, resources: Iterable[str], faults: Callable[[], Mapping[str, str]], *, policies: Callable[[], str]
    ) -> None:
        """From now on ask which of `resources`, and whether the policies, cannot be read whenever the metrics are."""
        for resource in resources:
            child = self._caches["cache_faulty"].labels(resource)
            child.set_function(lambda resource=resource: float(resource in faults()))
        self._policies_unread.set_function(lambda: float(bool(policies())))

    def unknown_answers(self, counts: Mapping[str, int]) -> None:
        """From now on read these counts, by resource, whenever the metrics are read."""
        for resource in counts:
            self._caches["cache_unknown_answers_total"].ask(resource, value=partial(counts.__getitem__, resource))

    def decided(self, webhook: str, request: AdmissionRequest, decision: Decision, seconds: float) -> None:
        """Count and log one decision."""
        verdict = "allowed" if decision.allowed else "denied"
        self._reviews[webhook, request.operation, verdict, "true" if request.dry_run else "false"].inc()
        self._durations[webhook,].observe(seconds)
        for action, findings in (("deny", decision.denied), ("warn", decision.warned), ("audit", decision.audited)):
            for finding in findings:
                self._rule_results[finding.rule, action].inc()
        if decision.rule_faults:
            self.own_rule_faults.note(decision.rule_faults)
        if not request.dry_run and webhook == "validate":
            self.jobs.decided(request.namespace, decision)
            if decision.denied:
                worst = min(decision.denied, key=lambda finding: finding.importance).rule
                for resource, gpus in decision.refused_gpus.items():
                    self._refused_gpus[worst, resource].inc(gpus)
        for finding, _ in decision.exempted:
            self._exemptions[finding.rule,].inc()
        injected = Counted(decision.authors)
        for author, operations in injected.items():
            self._patch_ops[author,].inc(operations)
        self.log.info(
            DecisionLine(
                time=datetime.now(UTC),
                webhook=webhook,
                uid=request.uid[:MAX_LOGGED_CHARACTERS],
                operation=request.operation,
                namespace=request.namespace[:MAX_LOGGED_CHARACTERS],
                name=decision.name[:MAX_LOGGED_CHARACTERS],
                user=request.user_info.username[:MAX_LOGGED_CHARACTERS],
                dry_run=bool(request.dry_run),
                allowed=decision.allowed,
                denied=_ids(decision.denied),
                warned=_ids(decision.warned),
                audited=_ids(decision.audited),
                exempted=_ids([finding for finding, _ in decision.exempted]) if decision.exempted else [],
                injected=list(injected),
                skipped=decision.skipped[:MAX_LOGGED_CHARACTERS],
                policy=decision.policy,
                duration_ms=round(seconds * 1000, 3),
            )
        )

    def refused(
        self,
        webhook: str | None,
        status: HTTPStatus,
        reason: str,
        *,
        peer: str | None,
        seconds: float = 0,
        shed: bool = False,
    ) -> None:
        """Count and log a request that got no decision; `webhook` is None for a path that belongs to none."""
        if webhook is not None:
            self._durations[webhook,].observe(seconds)
        if shed:
            self._shed.labels(webhook).inc()
            return  # a log line each would add to the overload
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self._cluster_errors.labels(webhook).inc()
        elif status == HTTPStatus.GATEWAY_TIMEOUT:
            self._deadline_exceeded.labels(webhook).inc()
        elif status < HTTPStatus.INTERNAL_SERVER_ERROR:
            self._bad_requests.labels(status.value).inc()
        self._refusals.tell(Refusal(webhook, status.value, reason, peer))

    def too_expensive(self, webhook: str, namespace: str, name: str, user: str = "") -> None:
        """Count and log an object that took too much processor time."""
        self._too_expensive.labels(webhook).inc()
        self.log.warning(
            "too expensive to judge",
            webhook=webhook,
            namespace=namespace[:MAX_LOGGED_CHARACTERS],
            name=name[:MAX_LOGGED_CHARACTERS],
            user=user[:MAX_LOGGED_CHARACTERS],
        )

    def failed(self, webhook: str, error: Exception) -> None:
        """Count and log a fault of ours."""
        self._internal_errors.labels(webhook).inc()
        self.log.error("internal error", webhook=webhook, **describe(error))


def _make(metric: Metric, registry: CollectorRegistry) -> Any:
    if metric.read_on_scrape:
        return AskedCounter(metric.name, metric.help, metric.labels, registry=registry)
    if metric.kind == "counter":
        return Counter(metric.name, metric.help, metric.labels, registry=registry)
    if metric.kind == "gauge":
        return Gauge(metric.name, metric.help, metric.labels, registry=registry)
    return Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=BUCKETS)


def _ids(findings: list[Finding]) -> list[str]:
    return list(dict.fromkeys([finding.rule for finding in findings])) if findings else []
