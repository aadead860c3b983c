"""The report on jobs of a cluster that break policies."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from webhook.admission.decision import Decision
from webhook.admission.what_if import resubmitted
from webhook.cli.job_world import JobWorld
from webhook.cli.terminal import bad, caution, counted, faint, good, heading, printable
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.without_jobs import WithoutJobs
from webhook.kit.settings import Action
from webhook.policy.in_force import PolicySet
from webhook.policy.layers import Layer


@dataclass(frozen=True, slots=True)
class JobAudit:
    """An existing job, and the decision if it were submitted now."""

    namespace: str
    name: str
    decision: Decision

    @property
    def order(self) -> tuple[Any, ...]:
        """The key for sorting: most rejections first, then most warnings."""
        number = Counter(action for action, _ in self.decision.findings)
        denied, warned = number[Action.DENY], number[Action.WARN]
        return not denied, -denied, not warned, -warned, self.namespace, self.name

    def as_text(self) -> Iterator[str]:
        verdict = bad("would be rejected") if self.decision.denied else caution("would be admitted")
        yield f"{heading(printable(f'{self.namespace}/{self.name}'))}: {verdict}"
        for action, finding in self.decision.findings:
            paint = bad if action is Action.DENY else caution if action is Action.WARN else faint
            first, *more = f"{finding.violation.path}: {finding.sentence}".splitlines()
            yield f"  {paint(action)}: {printable(first)}"
            yield from (f"    {printable(line)}" for line in more)

    def as_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "refused": bool(self.decision.denied),
            "violations": [
                {
                    "rule": finding.rule,
                    "action": str(action),
                    "field": finding.violation.path,
                    "message": finding.violation.message,
                    "fix": finding.violation.fix,
                }
                for action, finding in self.decision.findings
            ],
        }


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit."""

    origin: str
    policies: Sequence[Layer]
    total: int
    breaking: Sequence[JobAudit]
    """The jobs that break a rule, sorted by `JobAudit.order`."""

    @property
    def refused(self) -> int:
        return sum(bool(job.decision.denied) for job in self.breaking)

    @property
    def by_rule(self) -> dict[str, Counter[str]]:
        """The number of jobs by rule and action. The rule with the most rejections comes first."""
        jobs: dict[str, Counter[str]] = {}
        for job in self.breaking:
            for rule, action in {(finding.rule, action) for action, finding in job.decision.findings}:
                jobs.setdefault(rule, Counter())[action] += 1
        return dict(sorted(jobs.items(), key=lambda item: (-item[1][Action.DENY], -item[1].total(), item[0])))

    def as_text(self) -> Iterator[str]:
        names = ", ".join(layer.name for layer in self.policies) or "the built-in defaults"
        yield printable(f"policies: {names} ({self.origin})")
        for job in self.breaking:
            yield ""
            yield from job.as_text()
        if self.breaking:
            yield ""
            yield heading("jobs by rule")
            for rule, counts in self.by_rule.items():
                yield f"  {rule}: {', '.join(f'{counts[action]} {action}' for action in Action if counts[action])}"
        yield ""
        rest = len(self.breaking) - self.refused
        if not self.breaking:
            yield f"{counted(self.total, 'job')}, {good('none to look at')}"
            return
        breaking = f"{self.refused} would be rejected, {rest} would only be reported, "
        yield f"{counted(self.total, 'job')}: {breaking}{self.total - len(self.breaking)} valid"

    def as_json(self) -> dict[str, Any]:
        return {
            "policies": [layer.name for layer in self.policies],
            "jobs": self.total,
            "refused": self.refused,
            "byRule": {
                rule: {str(action): count for action, count in counts.items()} for rule, counts in self.by_rule.items()
            },
            "breaking": [job.as_json() for job in self.breaking],
        }


def audit(
    world: JobWorld, policies: Sequence[Layer], jobs: Iterable[bytes], *, namespace: str = "", today: date
) -> AuditReport:
    """Judge stored jobs that have not ended. An empty `namespace` is all namespaces."""
    in_force, view = PolicySet(policies), WithoutJobs(world.cluster)
    total, breaking = 0, []
    for data in jobs:
        request = resubmitted.creation(data)
        if request is None or (namespace and request.namespace != namespace):
            continue
        stored = world.cluster.get(MPI_JOBS, (request.namespace, request.name))
        decision = resubmitted.judge(data, policies=in_force, view=view, today=today)
        if decision is None or (isinstance(stored, MPIJobRecord) and stored.over):
            continue
        total += 1
        job = JobAudit(request.namespace, request.name, decision)
        if any(job.decision.findings):
            breaking.append(job)
    return AuditReport(world.origin, policies, total, sorted(breaking, key=lambda job: job.order))
