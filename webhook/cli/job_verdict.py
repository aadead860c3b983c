"""The verdict on a job in a file, for people and for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.api.mpijob import replica_path
from webhook.cli import injected
from webhook.cli.ci_reports import Problem
from webhook.cli.files import Manifest, line_of
from webhook.cli.injected import Injected
from webhook.cli.terminal import bad, caution, counted, good, printable
from webhook.policy.in_force import Policy

PODS = "pods"
"""Used as a rule id for pods that the API server rejects."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one job."""

    manifest: Manifest
    namespace: str
    validation: Decision
    mutation: Decision = field(default_factory=Decision)
    updates: bool = False
    """The job exists in the cluster, so the file was checked as an update."""
    standing: Sequence[Finding] = ()
    """Existing faults of the job, for which the update is not rejected."""
    unknown: frozenset[str] = frozenset()
    """Resources that the verdict could not use, by name."""
    policy: Policy | None = None
    """The policy that decided; None if there was none."""
    refused_pods: Mapping[str, str] = field(default_factory=dict)
    """Why the API server rejects the pods, by their role."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.manifest.title}" if self.namespace else self.manifest.title

    @property
    def allowed(self) -> bool:
        return self.validation.allowed

    @property
    def warnings(self) -> list[str]:
        """The warnings that kubectl would print."""
        return [*self.mutation.warnings, *self.validation.warnings]

    @property
    def injected(self) -> list[Injected]:
        return injected.by_injection(self.mutation)

    def as_json(self) -> dict[str, Any]:
        """For programs; `causes` are all violations that reject the job."""
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
            "refusedPods": dict(self.refused_pods),
            "notJudged": sorted(self.unknown),
            "injected": [entry.as_json() for entry in self.injected],
            "hints": self.mutation.hints,
            "policies": [
                {"name": layer.name, "resourceVersion": layer.version, "digest": layer.digest}
                for layer in (self.policy.layers if self.policy else ())
            ],
        }

    def problems(self) -> Iterator[Problem]:
        """The reasons for a rejection, then the warnings."""
        yield from map(_problem, self.validation.denied)
        yield from self.cautions()

    def cautions(self) -> Iterator[Problem]:
        """Warnings, whether the job is rejected or not; injections are not among them."""
        yield from (replace(_problem(found), warns=True) for found in self.validation.warned)
        for rule, fault in self.validation.rule_faults.items():
            yield Problem(rule, f"the policy's rule {rule} could not be evaluated: {fault}", warns=True)
        for text in (*self.validation.cautions, *self.mutation.cautions):
            yield Problem(text.partition(": ")[0], text, warns=True)
        for role, said in self.refused_pods.items():
            told = f"the API server rejects this pod: {said}"
            yield Problem(PODS, told, field=f"{replica_path(role)}.template", warns=True)
        for found in self.standing:
            told = f"it would be rejected if it were new: {found.sentence}"
            yield Problem(found.rule, told, field=found.violation.path, warns=True)

    def _refusal(self) -> Iterator[str]:
        """The message without its first line, each problem with its line in the file."""
        left = [*self.validation.denied]
        for line in self.validation.message.splitlines()[1:]:
            starts = left and line.startswith(f"{len(self.validation.denied) - len(left) + 1}. ")
            yield f"{line}{self._line(left.pop(0).violation.path)}" if starts else line

    def _line(self, field: str) -> str:
        number = line_of(self.manifest, field) if field else None
        return f" (line {number})" if number else ""

    def as_text(self, *, short: bool = False) -> Iterator[str]:
        """For people, in lines, with colours. `short` leaves out what was injected."""
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


def _problem(found: Finding) -> Problem:
    return Problem(found.rule, found.sentence, field=found.violation.path)


def _cause(found: Finding) -> dict[str, str]:
    violation = found.violation
    return {"rule": found.rule, "field": violation.path, "message": f"{violation.message}. {violation.fix}"}


def summary(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """In lines; empty without any job."""
    if verdicts:
        refused = sum(not verdict.allowed for verdict in verdicts)
        yield f"{counted(len(verdicts), 'job')}: {len(verdicts) - refused} admitted, {refused} rejected"
    for identity in dict.fromkeys(verdict.policy.identity for verdict in verdicts if verdict.policy):
        if identity:
            yield printable(f"decided by: {identity}")
