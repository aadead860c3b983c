"""What `/metrics/jobs` tells of jobs that break the policy of today, where an option asks for it."""

from collections.abc import Iterator
from math import inf
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook.companions.audit.outcome import counts
from webhook.companions.audit.standing import StandingAudit
from webhook.companions.job_metrics import of_now
from webhook.server.gauges import READ, gauge
from webhook.server.metrics import PREFIX, Metric

JOBS: Final = Metric(
    PREFIX + "audit_jobs",
    "gauge",
    ("namespace",),
    f"MPIJobs that have not ended and were judged as if they were created now. {READ}",
)
REFUSED: Final = Metric(
    PREFIX + "audit_refused", "gauge", ("namespace",), f"Those of them that would be refused. {READ}"
)
VIOLATIONS: Final = Metric(
    PREFIX + "audit_violations",
    "gauge",
    ("namespace", "rule", "action"),
    f"Those of them that break a rule, by the rule and what it would lead to: deny, warn or audit. {READ}",
)
AGE: Final = Metric(
    PREFIX + "audit_age_seconds",
    "gauge",
    (),
    "Seconds since this replica last judged all jobs, infinite before the first time.",
)
DURATION: Final = Metric(PREFIX + "audit_duration_seconds", "gauge", (), "How long that took.")
AUDIT_METRICS: Final = (JOBS, REFUSED, VIOLATIONS, AGE, DURATION)


class AuditCollector(Collector):
    """The gauges, worked out whenever they are read, of a copy since another thread does."""

    def __init__(self, audit: StandingAudit) -> None:
        self._audit = audit

    def describe(self) -> list[GaugeMetricFamily]:
        """The metrics without values."""
        return [*map(gauge, AUDIT_METRICS)]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics with the values of now."""
        outcomes = [] if self._audit.age == inf else list(self._audit.outcomes.items())
        found = counts(outcomes, of_now(namespace for (namespace, _), _ in outcomes))
        yield gauge(JOBS, {(namespace,): count for namespace, count in found.jobs.items()})
        yield gauge(REFUSED, {(namespace,): count for namespace, count in found.refused.items()})
        yield gauge(VIOLATIONS, found.violations)
        yield gauge(AGE, {(): self._audit.age})
        yield gauge(DURATION, {(): self._audit.seconds})
