"""Prometheus metrics and JSON logs, with one line for each decision.

No metric of `/metrics` has a namespace, user or job name as label: the number of series would grow with the cluster.
Metrics of `/metrics/jobs` have a limited number of namespaces as labels.

Log lines have the names of namespaces, users and jobs, in limited length. No log line contains an object, a value from
an object, or the text of an exception.
"""

import logging
import platform
import re
import sys
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from itertools import product
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector

from webhook import __version__
from webhook.admission.messages import Finding
from webhook.admission.pipelines import Decision
from webhook.api.review import AdmissionRequest, AdmissionResponse
from webhook.client import wire
from webhook.client.watch import Watch
from webhook.controllers.reconciler import PacedClient, Reconciler
from webhook.controllers.reservations.ledger import OUTCOMES
from webhook.plugins.loading import Failures, Plugin
from webhook.server import http_request
from webhook.server.http_server import REASONS
from webhook.server.limits import MAX_LOGGED_CHARACTERS, MAX_LOGGED_FAILURES, MAX_RULES_WITH_FAULTS
from webhook.server.log import RefusalLog, describe, make_log
from webhook.server.metrics import METRICS, MetricSet, Value

_BY_WEBHOOK: Final = (
    "shed_total", "cluster_errors_total", "deadline_exceeded_total", "too_expensive_total", "internal_errors_total",
)  # fmt: skip
# Quoted parts of a fault may be values of a job.
_QUOTED: Final = re.compile(r""""[^"]*"|'[^']*'""")


class Telemetry:
    """The metrics, in their own registries, and the log."""

    def __init__(self, log: Any = None) -> None:
        self.log = log or make_log(sys.stderr.buffer)
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.metrics = MetricSet(METRICS, self.registry)
        self.job_registry = CollectorRegistry()
        """Optional parts fill it with metrics that have a namespace as label."""
        self.on_validated: list[Callable[[str, Decision], None]] = []
        """Functions that count verdicts on jobs, called with the namespace and the verdict."""
        self._refusals = RefusalLog(self.log)
        self._policies: list[Value] = []
        self._plugin_failures: set[tuple[str, ...]] = set()
        self._rule_faults: dict[str, str] = {}
        """The last fault of each custom rule since the policies changed."""
        self.metrics.on_scrape(lambda: self._policies)
        self.metrics.set("build_info", 1, __version__, platform.python_version())
        # alerts need these time series from the start
        for name, hook in product(_BY_WEBHOOK, http_request.HOOKS.values()):
            self.metrics.add(name, hook, amount=0)
        for outcome in OUTCOMES:
            self.metrics.add("quota_ledger_total", outcome, amount=0)
        for reason in REASONS:
            self.metrics.add("connections_refused_total", reason, amount=0)

    def policies_in_force(self, digest: str, states: Iterable[str] = (), *, custom_rules: Iterable[str] = ()) -> None:
        """`states` are the states of the policies' ConfigMaps."""
        counts = Counted(states)
        named = ("current", "last-good", "unusable")
        self._policies = [
            ("policy_info", (digest,), 1),
            *(("policy_documents", (name,), counts[name]) for name in named),
        ]
        broken = counts.total() > counts["current"]
        self.metrics.add("policy_reloads_total", "broken" if broken else "good")
        self._rule_faults.clear()
        for rule in custom_rules:
            self.metrics.add("own_rule_faults_total", rule, amount=0)
        self.log.info("policies in force", hash=digest, documents=dict(counts))

    def policy_reviewed(self, request: AdmissionRequest, name: str, response: AdmissionResponse) -> None:
        self.metrics.add("policy_reviews_total", "allowed" if response.allowed else "denied")
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
        """Count the jobs of a conversion by outcome."""
        self.metrics.observe("review_duration_seconds", seconds, "convert")
        for outcome, number in outcomes.items():
            self.metrics.add("conversions_total", version, outcome, amount=number)

    def plugins(self, plugins: Iterable[Plugin], failures: Failures) -> None:
        """Log the plug-ins, and from now on each kind of plug-in failure once."""
        loaded = tuple(plugins)
        for plugin in loaded:
            self.log.log(
                logging.WARNING if plugin.faults else logging.INFO,
                "plug-in",
                plugin=plugin.name,
                version=plugin.version,
                state=plugin.state,
                rules=plugin.rules,
                injections=plugin.injections,
                faults=plugin.faults,
            )
        failures.listener = self._plugin_failed
        self.metrics.on_scrape(
            lambda: (("plugins", (plugin.name, plugin.version, plugin.state), 1) for plugin in loaded)
        )
        self.metrics.on_scrape(lambda: (("plugin_failures_total", key, n) for key, n in failures.counts.items()))

    def _plugin_failed(self, kind: str, entry_id: str, error: BaseException) -> None:
        fields = describe(error)
        place = kind, entry_id, fields["error"], *fields["traceback"][-1:]
        if place not in self._plugin_failures and len(self._plugin_failures) < MAX_LOGGED_FAILURES:
            self._plugin_failures.add(place)
            self.log.error("plug-in failed", kind=kind, name=entry_id, **fields)

    def companion(self, companion: Reconciler[Any], api: PacedClient) -> None:
        self.metrics.on_scrape(partial(_companion, companion, api))

    def caches(self, watches: Iterable[Watch[Any, Any]]) -> None:
        for watch in watches:
            self.metrics.on_scrape(partial(_cache, watch))

    def decided(self, webhook: str, request: AdmissionRequest, decision: Decision, seconds: float) -> None:
        metrics, verdict = self.metrics, "allowed" if decision.allowed else "denied"
        metrics.add("reviews_total", webhook, request.operation, verdict, "true" if request.dry_run else "false")
        metrics.observe("review_duration_seconds", seconds, webhook)
        for action, finding in decision.findings:
            metrics.add("rule_results_total", finding.rule, action)
        for rule, fault in decision.rule_faults.items():
            self._rule_failed(rule, _QUOTED.sub("...", fault))
        if not request.dry_run and webhook == "validate":
            for count in self.on_validated:
                count(request.namespace, decision)
            if decision.denied:
                worst = min(decision.denied, key=lambda finding: (bool(finding.cause), finding.importance)).rule
                for resource, gpus in decision.refused_gpus.items():
                    metrics.add("refused_gpus_total", worst, resource, amount=gpus)
        for finding, _ in decision.exempted:
            metrics.add("exemptions_total", finding.rule)
        injected = Counted(decision.authors)
        for author, operations in injected.items():
            metrics.add("patch_ops_total", author, amount=operations)
        self.log.info(
            "decision",
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
            exempted=_ids([finding for finding, _ in decision.exempted]),
            injected=list(injected),
            skipped=decision.skipped[:MAX_LOGGED_CHARACTERS],
            policy=decision.policy,
            duration_ms=round(seconds * 1000, 3),
        )

    def _rule_failed(self, rule: str, fault: str) -> None:
        self.metrics.add("own_rule_faults_total", rule)
        has_room = rule in self._rule_faults or len(self._rule_faults) < MAX_RULES_WITH_FAULTS
        if self._rule_faults.get(rule) != fault and has_room:
            self._rule_faults[rule] = fault
            self.log.warning("custom rule not evaluated", rule=rule, fault=fault)

    def concerns(self) -> dict[str, str]:
        """Custom rules that could not be evaluated, for `/readyz`. The service stays ready."""
        return {
            f"own-rule-{rule}": f"the policy's rule {rule} could not be evaluated: {fault}"
            for rule, fault in self._rule_faults.items()
        }

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
        """`webhook` is None for an unknown path."""
        if webhook is not None:
            self.metrics.observe("review_duration_seconds", seconds, webhook)
        if shed:
            self.metrics.add("shed_total", str(webhook))
            return  # a log line for each request would add to the overload
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.metrics.add("cluster_errors_total", str(webhook))
        elif status == HTTPStatus.GATEWAY_TIMEOUT:
            self.metrics.add("deadline_exceeded_total", str(webhook))
        elif status < HTTPStatus.INTERNAL_SERVER_ERROR:
            self.metrics.add("bad_requests_total", str(status.value))
        self._refusals.warning("refused", webhook=webhook, code=status.value, reason=reason, peer=peer)

    def too_expensive(self, webhook: str, namespace: str, name: str, user: str = "") -> None:
        self.metrics.add("too_expensive_total", webhook)
        self.log.warning(
            "too expensive to judge",
            webhook=webhook,
            namespace=namespace[:MAX_LOGGED_CHARACTERS],
            name=name[:MAX_LOGGED_CHARACTERS],
            user=user[:MAX_LOGGED_CHARACTERS],
        )

    def failed(self, webhook: str, error: Exception) -> None:
        self.metrics.add("internal_errors_total", webhook)
        self.log.error("internal error", webhook=webhook, **describe(error))


def _cache(watch: Watch[Any, Any]) -> Iterator[Value]:
    kind = watch.kind.name
    yield "cache_synced", (kind,), watch.synced
    yield "cache_objects", (kind,), len(watch.store.records)
    yield "cache_age_seconds", (kind,), watch.age
    yield "cache_requests_total", (kind,), watch.requests
    yield from (("cache_restarts_total", (kind, reason), watch.restarts[reason]) for reason in wire.FaultReason)


def _companion(companion: Reconciler[Any], api: PacedClient) -> Iterator[Value]:
    name = companion.name
    yield from (("companion_reconciles_total", (name, result), n) for result, n in companion.results.items())
    yield "companion_requests_total", (name,), api.requests
    yield "companion_waiting", (name,), companion.waiting
    yield "companion_failing", (name,), companion.failing


def _ids(findings: list[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.rule for finding in findings))
