"""Compares verdicts and injections for existing jobs under the current and under changed policies.

The jobs are judged as if they were created now. In a cluster, a changed policy does not stop running jobs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, NamedTuple

import msgspec

from webhook.admission.decision import Decision
from webhook.admission.limits import MAX_NAMED_INJECTIONS, MAX_NAMED_JOBS
from webhook.admission.what_if import resubmitted
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import ClusterView
from webhook.cluster.without_jobs import WithoutJobs
from webhook.kit.settings import Action
from webhook.policy.in_force import Policy, PolicySet

NEWLY: Final = "newly"
NO_LONGER: Final = "no longer"
OTHERWISE: Final = "differently"


@dataclass(slots=True)
class Hit:
    """The jobs of a namespace that violate a rule."""

    new: set[str] = field(default_factory=set)
    """Jobs that violate the rule only under the changed policies."""
    gone: set[str] = field(default_factory=set)
    """Jobs that violate the rule only under the current policies."""
    stays: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Replay:
    """Counts over the jobs judged so far."""

    total: int = 0
    newly_denied: dict[str, list[str]] = field(default_factory=dict)
    """The rules that would deny a job, by job."""
    newly_admitted: list[str] = field(default_factory=list)
    injections: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Jobs whose injections would differ, by injection and kind of difference."""
    hits: dict[tuple[Action, str, str], Hit] = field(default_factory=dict)
    """Violating jobs by action, rule and namespace."""
    complete: bool = True
    """False if the time did not suffice for all jobs."""
    too_expensive: int = 0
    """Jobs over the limit on processor time. They are not in `total`."""

    def summary(self) -> str:
        more = f"; {self.too_expensive:,} more are too expensive to judge" if self.too_expensive else ""
        return self._summary() + more

    def _summary(self) -> str:
        jobs = f"{self.total:,} jobs" if self.complete else f"the first {self.total:,} jobs"
        if self.newly_denied:
            by_rule = Counter(rule for rules in self.newly_denied.values() for rule in rules)
            rules = ", ".join(f"{rule} {count}" for rule, count in sorted(by_rule.items(), key=lambda e: (-e[1], e[0])))
            text = f"would newly deny {len(self.newly_denied):,} of {jobs}: {rules}"
            return f"{text} ({_named(list(self.newly_denied))})"
        text = f"would newly deny none of {jobs}"
        if self.newly_admitted:
            return f"only loosens: {text}, and admit {len(self.newly_admitted):,} ({_named(self.newly_admitted)})"
        return text

    def injections_summary(self) -> str:
        """The text about changed injections. Empty if no injection would change."""
        changed = [
            f"{injection} {how} into {len(jobs):,}"
            for injection, changes in sorted(self.injections.items())
            for how, jobs in changes.items()
        ]
        more = [f"and {len(changed) - MAX_NAMED_INJECTIONS} more"] if len(changed) > MAX_NAMED_INJECTIONS else []
        return f"changed injections: {', '.join([*changed[:MAX_NAMED_INJECTIONS], *more])}" if changed else ""


class Replayed(NamedTuple):
    """The decisions about a job under both sets of policies."""

    namespace: str
    name: str
    injected: tuple[Decision, Decision]
    """Before and after the change; the same decision twice if the injections cannot differ."""
    verdicts: tuple[Decision, Decision]


class Replayer:
    """Judges one job at a time, so that the caller can do other work in between."""

    def __init__(self, *, before: PolicySet, after: PolicySet, view: ClusterView, today: date) -> None:
        self._before = before
        self._after = after
        self._view = WithoutJobs(view)
        self._today = today
        self.result = Replay()

    def add(self, jobs: Iterable[bytes | msgspec.Raw]) -> None:
        for data in jobs:
            self.count(self.judge(data))

    def judge(self, data: bytes | msgspec.Raw) -> Replayed | None:
        """Judge a job. None if the job cannot be read. `result` includes the job only after a call of `count`."""
        request = resubmitted.creation(data)
        if request is None:
            return None
        namespace = self._view.get(NAMESPACES, request.namespace)
        old, new = (policies.for_namespace(namespace) for policies in (self._before, self._after))
        injected = resubmitted.inject(request, old, self._view)
        injected_then = injected if _inject_alike(old, new) else resubmitted.inject(request, new, self._view)
        before = resubmitted.verdict(request, injected, old, view=self._view, today=self._today)
        after = resubmitted.verdict(request, injected_then, new, view=self._view, today=self._today)
        return Replayed(request.namespace, request.name, (injected, injected_then), (before, after))

    def count(self, job: Replayed | None) -> None:
        if job is not None:
            self.result.total += 1
            self._compare(job.namespace, job.name, *job.verdicts)
            self._compare_injections(f"{job.namespace}/{job.name}", *job.injected)

    def _compare(self, namespace: str, name: str, before: Decision, after: Decision) -> None:
        job = f"{namespace}/{name}"
        if after.denied and not before.denied:
            self.result.newly_denied[job] = sorted(_rules(after, Action.DENY))
        elif before.denied and not after.denied:
            self.result.newly_admitted.append(job)
        for action in (Action.DENY, Action.WARN):
            was, will = _rules(before, action), _rules(after, action)
            for rule in was | will:
                hit = self.result.hits.setdefault((action, rule, namespace), Hit())
                (hit.stays if rule in was & will else hit.new if rule in will else hit.gone).add(job)

    def _compare_injections(self, job: str, before: Decision, after: Decision) -> None:
        if before is after:
            return
        old, new = _by_author(before), _by_author(after)
        for injection in sorted({*old, *new}):
            if old.get(injection) != new.get(injection):
                how = NEWLY if injection not in old else NO_LONGER if injection not in new else OTHERWISE
                self.result.injections.setdefault(injection, {}).setdefault(how, []).append(job)


def _inject_alike(old: Policy, new: Policy) -> bool:
    """Whether both policies make the same injections into every job."""
    inputs = [(policy.injections, policy.document.controllers, policy.admitted) for policy in (old, new)]
    return old is new or inputs[0] == inputs[1]


def _rules(decision: Decision, action: Action) -> set[str]:
    return {finding.rule for triggered, finding in decision.findings if triggered is action}


def _by_author(decision: Decision) -> dict[str, set[tuple[str, bytes]]]:
    """(path, value) of all values that each injection added."""
    values: dict[str, set[tuple[str, bytes]]] = {}
    # The last operation may list the injections in an annotation. It has no author.
    for author, operation in zip(decision.authors, decision.patch, strict=False):
        values.setdefault(author, set()).update(_parts(str(operation["path"]), operation["value"]))
    return values


def _parts(path: str, value: Any) -> Iterator[tuple[str, bytes]]:
    """(path, value) of each single value in `value`.

    The first injection may add a whole mapping or list, to which other injections add single values.
    """
    if isinstance(value, dict) and value and not path.endswith("/-"):
        for key, item in value.items():
            yield from _parts(f"{path}/{key}", item)
    elif isinstance(value, list) and not path.endswith("/-"):
        for item in value:
            yield from _parts(f"{path}/-", item)
    else:
        yield path, msgspec.json.encode(value, order="sorted")


def _named(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:MAX_NAMED_JOBS])
    return shown if len(names) <= MAX_NAMED_JOBS else f"{shown}, ..."
