"""Verdicts by namespace, at `/metrics/jobs`: who asks why a team's jobs are refused sees it here."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter

from webhook.admission.pipelines import Decision
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import Answer, ClusterView
from webhook.companions.job_metrics import BEYOND, Labels
from webhook.companions.limits import MAX_NAMESPACE_LABELS
from webhook.server.metrics import PREFIX, Metric

READ: Final = "dry runs left out. Of this replica: take the sum."
VERDICTS: Final = Metric(
    PREFIX + "namespace_reviews_total",
    "counter",
    ("namespace", "decision"),
    f"MPIJobs created or changed, by what became of it: allowed or denied; {READ}",
)
RESULTS: Final = Metric(
    PREFIX + "namespace_rule_results_total",
    "counter",
    ("namespace", "rule", "action"),
    f"Violations found, by rule and by what they led to: deny, warn or audit; {READ}",
)
VERDICT_METRICS: Final = (VERDICTS, RESULTS)


class NamespaceVerdicts:
    """The counters. Only namespaces that exist are named: whoever reaches the port may send any text for one."""

    def __init__(self, registry: CollectorRegistry, view: ClusterView) -> None:
        self._view = view
        self._namespaces = Labels(MAX_NAMESPACE_LABELS)
        self._verdicts, self._results = (
            Counter(metric.name, metric.help, metric.labels, registry=registry) for metric in VERDICT_METRICS
        )

    def count(self, namespace: str, decision: Decision) -> None:
        """Count one verdict on a job, and what led to it."""
        if decision.skipped:
            return
        found = self._view.get(NAMESPACES, namespace)
        label = BEYOND if isinstance(found, Answer) else self._namespaces.bounded(namespace)
        self._verdicts.labels(label, "allowed" if decision.allowed else "denied").inc()
        for action, findings in (("deny", decision.denied), ("warn", decision.warned), ("audit", decision.audited)):
            for finding in findings:
                self._results.labels(label, finding.rule, action).inc()
