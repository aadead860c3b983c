"""The metrics of the audit."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Final

from webhook.kit.settings import Action
from webhook.parts.standing_audit.standing import StandingAudit
from webhook.server.metrics import READ, Value, metric
from webhook.server.namespace_labels import of_now

_read_gauge = partial(metric, "gauge", on_scrape=True)

AUDIT_METRICS: Final = (
    _read_gauge("audit_jobs{namespace}", f"Audited MPIJobs: all that have not ended, judged as if created now. {READ}"),
    _read_gauge("audit_refused{namespace}", f"Audited MPIJobs that would be rejected. {READ}"),
    _read_gauge(
        "audit_violations{namespace, rule, action}",
        f"Audited MPIJobs that break a rule, by rule and action: deny, warn or audit. {READ}",
    ),
    _read_gauge(
        "audit_age_seconds", "Seconds since this replica's last audit of all MPIJobs; infinite before the first."
    ),
    _read_gauge("audit_duration_seconds", "Seconds that this replica's last audit of all MPIJobs took."),
)
"""Exposed at `/metrics/jobs` with --audit."""


def measured(audit: StandingAudit) -> Iterator[Value]:
    outcomes = [] if audit.age == inf else list(audit.outcomes.items())  # a copy: scrapes run in another thread
    namespaces = of_now(namespace for (namespace, _), _ in outcomes)
    counts = Counter[tuple[str, ...]]()
    for (namespace, _), rules in outcomes:
        label = namespaces.bounded(namespace)
        counts["audit_jobs", label] += 1
        counts["audit_refused", label] += any(action is Action.DENY for _, action in rules)
        counts.update(("audit_violations", label, rule, action) for rule, action in rules)
    yield from ((name, (*labels,), value) for (name, *labels), value in counts.items())
    yield "audit_age_seconds", (), audit.age
    yield "audit_duration_seconds", (), audit.seconds
