"""Runs policy tests."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from webhook.api import crd_schema, yaml
from webhook.api.names import closest_name
from webhook.api.review import UserInfo
from webhook.cli import ci_reports, job_check
from webhook.cli.ci_reports import Checked, Problem, unusable
from webhook.cli.files import Manifest, objects
from webhook.cli.job_verdict import Verdict
from webhook.cli.job_world import JobWorld
from webhook.cli.limits import MAX_VALUE_CHARACTERS
from webhook.cli.policy import job_fields
from webhook.cli.policy.suite import Location, PolicyTest, Suite, Unusable, finding_ids
from webhook.cli.policy.suite_document import Case, Expected, NamespaceFacts, SuiteDocument
from webhook.cli.terminal import bad, counted, good, heading, printable
from webhook.client.access import DEFAULT_NAMESPACE
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.policy.in_force import PolicySet

MISSING: Final = "expected-verdict-missing"
UNEXPECTED: Final = "unexpected-verdict"
STORED: Final = "stored-field-differs"
"""A field of the job after injections does not have the expected value."""
BROKEN: Final = "test-cannot-run"

FAULT: Final = "fault"
"""The action of a custom rule that could not be evaluated. Such a rule does not reject the job."""


class Reported(NamedTuple):
    """A finding of a verdict, with the fields of an expected finding."""

    rule: str
    action: str
    field: str
    message: str

    def __str__(self) -> str:
        return _in_words(self.action, self.field, self.message, self.rule)

    def meets(self, expected: Expected) -> bool:
        return (
            (expected.rule, expected.action) == (self.rule, self.action)
            and expected.field in {"", self.field}
            and expected.message in self.message
        )


@dataclass(frozen=True, slots=True)
class Outcome(Checked):
    """The outcome of a test."""

    findings: Sequence[Reported] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "name": self.name,
            "passed": not self.problems,
            "failures": [
                {"kind": problem.rule, "line": problem.line, "message": problem.message} for problem in self.problems
            ],
            "verdict": [finding._asdict() for finding in self.findings],
        }


def run(suite: Suite) -> Iterator[Outcome]:
    policies = PolicySet(suite.policies)
    for test in suite.tests:
        line = suite.line("tests", test.number, "name")
        try:
            verdict = judged(suite.document, test, policies)
        except BrokenTest as broken:
            problem = Problem(BROKEN, str(broken), suite.line("tests", test.number, *broken.location))
            yield Outcome(suite.file, test.case.name, line, [problem], unusable=True)
            continue
        findings = [*reported(verdict)]
        stored = verdict.mutation.document or verdict.manifest.document
        problems = [*_compared(suite, test, findings), *_stored(suite, test, stored)]
        yield Outcome(suite.file, test.case.name, line, problems, findings=findings)


class BrokenTest(Exception):
    """A test cannot run. `location` is the path of the fault in the test."""

    def __init__(self, message: str, *location: str | int) -> None:
        super().__init__(message)
        self.location: Location = location


def judged(document: SuiteDocument, test: PolicyTest, policies: PolicySet) -> Verdict:
    """The verdict on the job of a test; BrokenTest if the test cannot run."""
    manifest = _changed(test.job, test.case)
    facts = test.case.namespace or document.namespace or NamespaceFacts()
    namespace = facts.name or manifest.namespace or DEFAULT_NAMESPACE
    for job in (manifest.document, manifest.written or {}):
        if isinstance(job.get("metadata"), dict):
            job["metadata"]["namespace"] = namespace
    world = _world(document, test, policies, facts.model_copy(update={"name": namespace}))
    return job_check.check(manifest, world, namespace=namespace)


def _changed(job: Manifest, case: Case) -> Manifest:
    document = deepcopy(job.written or job.document)
    for path, value in case.change.items():
        try:
            job_fields.put(document, path, deepcopy(value))
        except job_fields.FieldError as error:
            raise BrokenTest(f"{path}: {error}", "change", path) from None
    try:
        (manifest,) = filter(job_check.is_job, objects(job.source, document))
    except ValueError:
        raise BrokenTest("the change leaves no MPIJob", "change") from None
    return manifest


def _world(document: SuiteDocument, test: PolicyTest, policies: PolicySet, namespace: NamespaceFacts) -> JobWorld:
    objects = [manifest.document for manifest in test.cluster]
    if ("Namespace", namespace.name) not in {(manifest.kind, manifest.name) for manifest in test.cluster}:
        # The API server sets this label.
        labels = {"kubernetes.io/metadata.name": namespace.name, **namespace.labels}
        metadata = {**namespace.model_dump(), "labels": labels}
        objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    try:
        cluster = Snapshot(objects)
    except SnapshotError as error:
        raise BrokenTest(f"cluster: {error}", *(["cluster"] if test.case.cluster else [])) from None
    user = test.case.user or document.user
    world = JobWorld(
        cluster,
        crd_schema.packaged(),
        policies=policies,
        user=None if user is None else UserInfo(user.name, groups=list(user.groups)),
        may_exempt=None if user is None else lambda _, rules: {rule: rule in user.may_exempt for rule in rules},
    )
    world.today = test.case.date or document.date or world.today
    return world


def reported(verdict: Verdict) -> Iterator[Reported]:
    decision = verdict.validation
    exempted = [finding for finding, _ in decision.exempted]
    by_action = {"deny": decision.denied, "warn": decision.warned, "audit": decision.audited, "exempt": exempted}
    for action, findings in by_action.items():
        for finding in findings:
            violation = finding.violation
            yield Reported(finding.rule, action, violation.path, f"{violation.message}. {violation.fix}")
    broken = {finding.rule for finding in (*decision.denied, *decision.warned, *decision.audited)}
    yield from (Reported(rule, FAULT, "", why) for rule, why in decision.rule_faults.items() if rule not in broken)
    for text in dict.fromkeys([*decision.cautions, *verdict.mutation.cautions]):
        author, _, note = text.partition(": ")
        yield Reported(author, "warn", "", note)


def _compared(suite: Suite, test: PolicyTest, findings: Sequence[Reported]) -> Iterator[Problem]:
    for place, expected in enumerate(test.case.expect):
        if not any(finding.meets(expected) for finding in findings):
            text = _in_words(
                expected.action, expected.field, expected.message and f'"{expected.message}"', expected.rule
            )
            line = suite.line("tests", test.number, "expect", place)
            yield Problem(MISSING, f"expected but missing: {text}{_unknown(expected.rule, suite)}", line)
    rules = suite.document.rules
    for finding in findings:
        compared = finding.action in {"deny", FAULT} or rules is None or finding.rule in rules
        if compared and not any(finding.meets(expected) for expected in test.case.expect):
            yield Problem(UNEXPECTED, f"not expected: {finding}", suite.line("tests", test.number, "expect"))


def _in_words(action: str, field: str, message: str, rule: str) -> str:
    return " ".join(filter(None, (action, field and f"{field}:", message, f"[{rule}]")))


def _unknown(rule: str, suite: Suite) -> str:
    ids = finding_ids(suite.policies)
    near = None if rule in ids else closest_name(rule, ids)
    return f"; no rule is called {rule}; did you mean {near}?" if near else ""


def _stored(suite: Suite, test: PolicyTest, document: Mapping[str, Any]) -> Iterator[Problem]:
    for path, expected in test.case.stored.items():
        value = job_fields.get(document, path)
        if value != expected:
            text = f"{path}: expected {_value(expected)}, the job has {_value(value)}"
            yield Problem(STORED, text, suite.line("tests", test.number, "stored", path))


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = yaml.dump_inline(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[: MAX_VALUE_CHARACTERS - 3]}..."


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The outcomes of all tests, and the files that could not be used."""

    outcomes: Sequence[Outcome]
    errors: Sequence[Unusable]

    @property
    def failed(self) -> int:
        return sum(bool(outcome.problems) for outcome in self.outcomes)

    @property
    def unusable(self) -> bool:
        """True if a test or a file is broken, or if there is no test."""
        return bool(self.errors) or not self.outcomes or any(outcome.unusable for outcome in self.outcomes)

    def in_form(self, form: str, *, quiet: bool) -> Iterator[str]:
        """The lines of the report. `quiet` leaves out passed tests from the form `text`."""
        if form == "text":
            yield from self._as_text(quiet=quiet)
        elif form == "json":
            yield json.dumps(self._as_json(), indent=2)
        else:
            errors = [unusable(error.file, BROKEN, error.message, error.line) for error in self.errors]
            yield from ci_reports.in_form(form, [*errors, *self.outcomes], "policy test")

    def _as_text(self, *, quiet: bool) -> Iterator[str]:
        file = ""
        for outcome in self.outcomes:
            if quiet and not outcome.problems:
                continue
            if outcome.file != file:
                file = outcome.file
                yield heading(printable(file))
            yield f"  {bad('FAILED') if outcome.problems else good('ok')}  {printable(outcome.name)}"
            for problem in outcome.problems:
                where = f"line {problem.line}: " if problem.line else ""
                yield f"    {printable(f'{where}{problem.message}')}"
        if self.outcomes:
            passed = len(self.outcomes) - self.failed
            yield f"{counted(len(self.outcomes), 'test')}: {passed} passed, {self.failed} failed"

    def _as_json(self) -> dict[str, Any]:
        return {
            "tests": [outcome.as_json() for outcome in self.outcomes],
            "errors": [error._asdict() for error in self.errors],
            "passed": len(self.outcomes) - self.failed,
            "failed": self.failed,
        }
