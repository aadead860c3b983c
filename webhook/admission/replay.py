"""What-if: the verdicts on existing jobs under the policies of today and under others.

Jobs are judged as if they were created now. That is what their owners would meet when they submit them again; jobs that
are stored already keep running, whatever the policy says.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date

import msgspec

from webhook.admission import pipelines
from webhook.admission.decision import Decision
from webhook.api.review import AdmissionRequest
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import ClusterView
from webhook.cluster.without_jobs import WithoutJobs
from webhook.policy.in_force import PolicySet

# Names that a warning has room for.
MAX_NAMED = 3


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Job(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


@dataclass(slots=True)
class Replay:
    """Counts over the jobs seen so far."""

    total: int = 0
    newly_denied: dict[str, list[str]] = field(default_factory=dict)
    """The rules that would deny, by job."""
    newly_admitted: list[str] = field(default_factory=list)
    complete: bool = True
    """False when there were more jobs than there was time for."""

    def summary(self) -> str:
        """One line for a user: what would change, most frequent rule first."""
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


class Replayer:
    """Judges jobs under both sets of policies, in portions, so that the caller can do other work in between."""

    def __init__(self, *, before: PolicySet, after: PolicySet, view: ClusterView, today: date) -> None:
        self._before = before
        self._after = after
        # The jobs run already: what they take is in the quotas' `used`, and must not keep them out themselves.
        self._view = WithoutJobs(view)
        self._today = today
        self.result = Replay()

    def add(self, jobs: Iterable[bytes | msgspec.Raw]) -> None:
        """Judge some more jobs, each as JSON of a stored MPIJob; what cannot be read is not counted."""
        for data in jobs:
            try:
                meta = msgspec.json.decode(data, type=_Job).metadata
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            self.result.total += 1
            before, after = (self._verdict(policies, data, meta) for policies in (self._before, self._after))
            name = f"{meta.namespace}/{meta.name}"
            if after.denied and not before.denied:
                self.result.newly_denied[name] = sorted({finding.rule for finding in after.denied})
            elif before.denied and not after.denied:
                self.result.newly_admitted.append(name)

    def _verdict(self, policies: PolicySet, data: bytes | msgspec.Raw, meta: _Meta) -> Decision:
        request = AdmissionRequest(
            uid="replay", operation="CREATE", name=meta.name, namespace=meta.namespace, object=msgspec.Raw(data)
        )
        namespace = self._view.get(NAMESPACES, meta.namespace)
        policy = policies.for_namespace(namespace)
        return pipelines.validate(request, policy=policy, view=self._view, today=self._today)


def _named(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:MAX_NAMED])
    return shown if len(names) <= MAX_NAMED else f"{shown}, ..."
