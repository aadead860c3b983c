"""Tests of policies, run: each job goes the way of `check`, and what comes of it is held against what was expected."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

from webhook.admission.messages import Finding
from webhook.api import crd_schema, yaml
from webhook.api.names import closest_name
from webhook.api.review import UserInfo
from webhook.cli import job_check
from webhook.cli.ci_reports import Rule
from webhook.cli.files import Manifest, objects
from webhook.cli.job_verdict import Verdict
from webhook.cli.job_world import JobWorld
from webhook.cli.limits import MAX_VALUE_CHARACTERS
from webhook.cli.policy import job_fields
from webhook.cli.policy.suite import Location, Suite, findings_known
from webhook.cli.policy.suite_document import Case, Expected, NamespaceFacts
from webhook.client.access import DEFAULT_NAMESPACE
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.policy.in_force import PolicySet

MISSING: Final = "expected-verdict-missing"
UNEXPECTED: Final = "unexpected-verdict"
STORED: Final = "stored-field-differs"
BROKEN: Final = "test-cannot-run"
KINDS: Final = {
    MISSING: Rule("A finding that the test expects is not there."),
    UNEXPECTED: Rule("A finding is there that the test does not expect."),
    STORED: Rule("A field of the job, as it would be stored, has another value."),
    BROKEN: Rule("The test cannot be run."),
}
"""What may be wrong, and what that means."""

FAULT: Final = "fault"
"""The action of an own rule that has no value, so that the job is let through."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A finding, as an expectation is held against it."""

    rule: str
    action: str
    field: str
    text: str
    """What is wrong and what to do."""

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        return f"{self.action} {where}{self.text} [{self.rule}]"

    def meets(self, expected: Expected) -> bool:
        """Whether this is what was expected."""
        return (
            (expected.rule, expected.action) == (self.rule, self.action)
            and expected.field in {"", self.field}
            and expected.message in self.text
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """One way in which a test failed."""

    kind: str
    line: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one test."""

    file: str
    name: str
    line: int | None
    seen: Sequence[Seen] = ()
    failures: Sequence[Failure] = ()

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return not self.failures

    @property
    def broken(self) -> bool:
        """Whether it could not be run."""
        return any(failure.kind == BROKEN for failure in self.failures)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "file": self.file,
            "line": self.line,
            "name": self.name,
            "passed": self.passed,
            "failures": [{"kind": each.kind, "line": each.line, "message": each.message} for each in self.failures],
            "verdict": [
                {"rule": each.rule, "action": each.action, "field": each.field, "message": each.text}
                for each in self.seen
            ],
        }


def run(suite: Suite) -> Iterator[Outcome]:
    """Every test of the suite, one after the other; none changes what the next one sees."""
    policies = PolicySet(suite.policies)
    for number, case in enumerate(suite.document.tests):
        try:
            verdict = judged(suite, number, policies)
        except BrokenTest as broken:
            failure = Failure(BROKEN, suite.line("tests", number, *broken.location), str(broken))
            yield Outcome(suite.file, case.name, suite.line("tests", number, "name"), (), (failure,))
            continue
        found = [*seen(verdict)]
        stored = verdict.mutation.document or verdict.manifest.document
        failures = [*_compared(suite, number, case, found), *_stored(suite, number, case, stored)]
        yield Outcome(suite.file, case.name, suite.line("tests", number, "name"), found, failures)


class BrokenTest(Exception):
    """A test cannot be run; `location` is what is wrong in it."""

    def __init__(self, message: str, *location: str | int) -> None:
        super().__init__(message)
        self.location: Location = location


def judged(suite: Suite, number: int, policies: PolicySet) -> Verdict:
    """What comes of the job of a test; BrokenTest where that cannot be said."""
    case = suite.document.tests[number]
    manifest = _changed(suite.jobs[number], case)
    facts = _namespace(suite, case, manifest)
    namespace = facts.name
    world = _world(suite, number, case, policies, facts)
    manifest = replace(manifest, document=manifest.created_in(namespace), written=_in(manifest.written, namespace))
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


def _in(written: dict[str, Any] | None, namespace: str) -> dict[str, Any] | None:
    metadata = (written or {}).get("metadata")
    if written is None or not isinstance(metadata, dict):
        return written
    return {**written, "metadata": {**metadata, "namespace": namespace}}


def _namespace(suite: Suite, case: Case, manifest: Manifest) -> NamespaceFacts:
    facts = case.namespace or suite.document.namespace or NamespaceFacts()
    return facts.model_copy(update={"name": facts.name or manifest.namespace or DEFAULT_NAMESPACE})


def _world(suite: Suite, number: int, case: Case, policies: PolicySet, namespace: NamespaceFacts) -> JobWorld:
    known = [*suite.cluster, *suite.clusters[number]]
    there = {str(_metadata(each).get("name")) for each in known if each.get("kind") == "Namespace"}
    if namespace.name not in there:
        # The API server sets this label, and policies select by it.
        labels = {"kubernetes.io/metadata.name": namespace.name, **namespace.labels}
        metadata = {**namespace.model_dump(), "labels": labels}
        known.append({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    try:
        cluster = Snapshot(known)
    except SnapshotError as error:
        raise BrokenTest(f"cluster: {error}", *(["cluster"] if suite.clusters[number] else [])) from None
    user = case.user or suite.document.user
    world = JobWorld(
        cluster,
        crd_schema.packaged(),
        policies=policies,
        user=None if user is None else UserInfo(user.name, groups=list(user.groups)),
        may_exempt=None if user is None else lambda _, asked: {rule: rule in user.may_exempt for rule in asked},
    )
    if (day := case.date or suite.document.date) is not None:
        world.today = day
    return world


def _metadata(found: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = found.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def seen(verdict: Verdict) -> Iterator[Seen]:
    """All findings of a verdict."""
    found = verdict.validation
    for action, findings in (
        ("deny", found.denied),
        ("warn", found.warned),
        ("audit", found.audited),
        ("exempt", [finding for finding, _ in found.exempted]),
    ):
        yield from (_of_finding(action, finding) for finding in findings)
    told = {finding.rule for finding in (*found.denied, *found.warned, *found.audited)}
    yield from (Seen(rule, FAULT, "", why) for rule, why in found.rule_faults.items() if rule not in told)
    for text in dict.fromkeys([*found.cautions, *verdict.mutation.cautions]):
        author, _, note = text.partition(": ")
        yield Seen(author, "warn", "", note)


def _of_finding(action: str, finding: Finding) -> Seen:
    violation = finding.violation
    return Seen(finding.rule, action, violation.path, f"{violation.message}. {violation.fix}")


def _compared(suite: Suite, number: int, case: Case, found: Sequence[Seen]) -> Iterator[Failure]:
    """What was expected and is not there, and what is there and was not expected."""
    for place, expected in enumerate(case.expect):
        if not any(each.meets(expected) for each in found):
            line = suite.line("tests", number, "expect", place)
            yield Failure(
                MISSING, line, f"expected, and not there: {_in_words(expected)}{_unknown(expected.rule, suite)}"
            )
    about = suite.document.rules
    for each in found:
        counts = each.action in {"deny", FAULT} or about is None or each.rule in about
        if counts and not any(each.meets(expected) for expected in case.expect):
            line = suite.line("tests", number, "expect")
            yield Failure(UNEXPECTED, line, f"not expected: {each}")


def _in_words(expected: Expected) -> str:
    where = f"{expected.field}: " if expected.field else ""
    text = f'"{expected.message}" ' if expected.message else ""
    return f"{expected.action} {where}{text}[{expected.rule}]"


def _unknown(rule: str, suite: Suite) -> str:
    known = findings_known(suite.policies)
    near = None if rule in known else closest_name(rule, known)
    return f"; no rule is called {rule}, did you mean {near}?" if near else ""


def _stored(suite: Suite, number: int, case: Case, document: Mapping[str, Any]) -> Iterator[Failure]:
    for path, expected in case.stored.items():
        value = job_fields.get(document, path)
        if value != expected:
            line = suite.line("tests", number, "stored", path)
            yield Failure(STORED, line, f"{path}: expected {_value(expected)}, the job has {_value(value)}")


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = yaml.dump_inline(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[: MAX_VALUE_CHARACTERS - 3]}..."
