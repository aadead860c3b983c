"""The verdict on a job in a file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.cli import injected
from webhook.cli.ci_reports import Problem
from webhook.cli.files import Manifest, line_of
from webhook.cli.injected import Injected
from webhook.cli.terminal import bad, caution, counted, good, printable
from webhook.policy.in_force import Policy


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one job."""

    manifest: Manifest
    namespace: str
    validation: Decision
    mutation: Decision = field(default_factory=Decision)
    updates: bool = False
    """True if the job exists in the cluster, so the file is an update."""
    standing: Sequence[Finding] = ()
    """Faults that do not reject the update, because the existing job already has them."""
    unknown: frozenset[str] = frozenset()
    """Names of resources that could not be read for the verdict."""
    policy: Policy | None = None
    """None if no rule was evaluated."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.manifest.title}" if self.namespace else self.manifest.title

    @property
    def allowed(self) -> bool:
        return self.validation.allowed

    @property
    def warnings(self) -> list[str]:
        return [*self.mutation.warnings, *self.validation.warnings]

    @property
    def injected(self) -> list[Injected]:
        return injected.by_injection(self.mutation)

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.manifest.source,
            "document": self.manifest.number,
            "kind": self.manifest.kind,
            "name": self.manifest.title,
            "namespace": self.namespace,
            "allowed": self.allowed,
            "message": self.validation.message,
            "causes": [*map(_cause, self.validation.denied)],
            "standing": [*map(_cause, self.standing)],
            "warnings": self.warnings,
            "ruleFaults": self.validation.rule_faults,
            "notJudged": sorted(self.unknown),
            "injected": [entry.as_json() for entry in self.injected],
            "hints": self.mutation.hints,
            "policies": [
                {"name": layer.name, "resourceVersion": layer.version, "digest": layer.digest}
                for layer in (self.policy.layers if self.policy else ())
            ],
        }

    def problems(self) -> Iterator[Problem]:
        yield from map(_problem, self.validation.denied)
        yield from self.cautions()

    def cautions(self) -> Iterator[Problem]:
        """The warnings, without notes about injections."""
        yield from (replace(_problem(finding), warns=True) for finding in self.validation.warned)
        for rule, fault in self.validation.rule_faults.items():
            yield Problem(rule, f"the policy's rule {rule} could not be evaluated: {fault}", warns=True)
        for text in (*self.validation.cautions, *self.mutation.cautions):
            yield Problem(text.partition(": ")[0], text, warns=True)
        for finding in self.standing:
            text = f"it would be rejected if it were new: {finding.sentence}"
            yield Problem(finding.rule, text, field=finding.violation.path, warns=True)

    def _refusal(self) -> Iterator[str]:
        """The rejection message without its first line. Each problem gets its line number in the file."""
        remaining = [*self.validation.denied]
        for line in self.validation.message.splitlines()[1:]:
            starts = remaining and line.startswith(f"{len(self.validation.denied) - len(remaining) + 1}. ")
            yield f"{line}{self._line(remaining.pop(0).violation.path)}" if starts else line

    def _line(self, field: str) -> str:
        number = line_of(self.manifest, field) if field else None
        return f" (line {number})" if number else ""

    def as_text(self, *, short: bool = False) -> Iterator[str]:
        """The lines for people. `short` leaves out the injections and the last empty line."""
        verdict = good("admitted") if self.allowed else bad("rejected")
        update = " (as a change to the job that the cluster has)" if self.updates else ""
        yield f"{printable(f'{self.manifest.source}: {self.title}')}: {verdict}{update}"
        for line in self._refusal():
            yield f"  {printable(line)}"
        for problem in self.cautions():
            yield f"  {caution('warning')}: {printable(problem.text)}{self._line(problem.field)}"
        if self.allowed and not short:
            yield from (f"  {line}" for line in injected.report(self.injected, updates=self.updates))
            yield from (f"  hint: {printable(hint)}" for hint in self.mutation.hints if not self.updates)
        if not short:
            yield ""


def _problem(finding: Finding) -> Problem:
    return Problem(finding.rule, finding.sentence, field=finding.violation.path)


def _cause(finding: Finding) -> dict[str, str]:
    violation = finding.violation
    return {"rule": finding.rule, "field": violation.path, "message": f"{violation.message}. {violation.fix}"}


def summary(verdicts: Sequence[Verdict]) -> Iterator[str]:
    if verdicts:
        rejected = sum(not verdict.allowed for verdict in verdicts)
        yield f"{counted(len(verdicts), 'job')}: {len(verdicts) - rejected} admitted, {rejected} rejected"
    for identity in dict.fromkeys(verdict.policy.identity for verdict in verdicts if verdict.policy):
        if identity:
            yield printable(f"decided by: {identity}")
