"""What an audit keeps of the verdict on a job, and the numbers that follow from all of them. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from webhook.admission.decision import Decision
from webhook.cluster.resource import ByNamespace
from webhook.companions.job_metrics import Labels
from webhook.kit.settings import Action

Broken = tuple[str, Action]
"""A rule, and what it would lead to."""
IN_ORDER: Final[tuple[Broken, ...]] = ()


def broken(decision: Decision) -> tuple[Broken, ...]:
    """The rules that a job breaks, each once for each action: a job with fifty findings of a rule is one job."""
    found = ((Action.DENY, decision.denied), (Action.WARN, decision.warned), (Action.AUDIT, decision.audited))
    pairs = {(finding.rule, action) for action, findings in found for finding in findings}
    return tuple(sorted(pairs)) if pairs else IN_ORDER


@dataclass(slots=True)
class Counts:
    """How many jobs there are, by namespace."""

    jobs: Counter[str] = field(default_factory=Counter)
    """Those that were judged."""
    refused: Counter[str] = field(default_factory=Counter)
    """Those that would be refused."""
    violations: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Those that break a rule, by namespace, rule and action."""


def counts(outcomes: Iterable[tuple[ByNamespace, tuple[Broken, ...]]], namespaces: Labels) -> Counts:
    """The numbers of these jobs."""
    found = Counts()
    for (namespace, _), rules in outcomes:
        label = namespaces.bounded(namespace)
        found.jobs[label] += 1
        found.refused[label] += any(action is Action.DENY for _, action in rules)
        for rule, action in rules:
            found.violations[label, rule, action] += 1
    return found
