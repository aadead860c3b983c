"""Reads policy tests (kind MPIJobPolicyTest), and the files to which they refer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from webhook import injections, rules
from webhook.admission.messages import SCHEMA
from webhook.api import yaml
from webhook.api.annotations import SKIP
from webhook.api.names import closest_name
from webhook.cli import files
from webhook.cli.files import STDIN, STDIN_TITLE, Manifest, ManifestError
from webhook.cli.policy import documents
from webhook.cli.policy.documents import TEST_KIND
from webhook.cli.policy.suite_document import Case, SuiteDocument
from webhook.kit.custom_rules import full_id
from webhook.policy import faults
from webhook.policy.document import API_VERSION
from webhook.policy.exemptions import EXEMPT, REQUIRED_INJECTION
from webhook.policy.layers import Layer

Location = tuple[str | int, ...]
Lines = Mapping[Location, int]


class Unusable(NamedTuple):
    """An error in a file of tests, or in a file to which a test refers."""

    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.message}"


@dataclass(frozen=True, slots=True)
class PolicyTest:
    """A test, and the objects that it needs."""

    number: int
    case: Case
    job: Manifest
    cluster: Sequence[Manifest]


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a document, and their policies."""

    file: str
    document: SuiteDocument
    lines: Lines
    policies: Sequence[Layer]
    tests: Sequence[PolicyTest]

    def line(self, *location: str | int) -> int | None:
        return files.nearest_line(self.lines, location)


@dataclass(slots=True)
class Loaded:
    """The content of all files."""

    suites: list[Suite] = field(default_factory=list)
    errors: list[Unusable] = field(default_factory=list)


def load(arguments: Iterable[str]) -> Loaded:
    loaded = Loaded()
    for argument in arguments:
        try:
            for source in files.files(argument, recursive=True):
                _load(source, loaded, searched=source != argument)
        except ManifestError as error:
            loaded.errors.append(Unusable(error.file, None, str(error).removeprefix(f"{error.file}: ")))
    return loaded


def _load(source: str, loaded: Loaded, *, searched: bool) -> None:
    content, shown = files.read(source), STDIN_TITLE if source == STDIN else source
    if searched and TEST_KIND.encode() not in content:
        return
    try:
        parts = yaml.split(content)
    except yaml.YamlError as error:
        raise ManifestError(f"{shown}: {error}", shown) from None
    if not parts:
        raise ManifestError(f"{shown}: is empty; a test is a document of kind {TEST_KIND}", shown)
    for part in parts:
        reader = _Reader(shown, Path() if source == STDIN else Path(source).parent, yaml.lines(part))
        suite = reader.suite(yaml.load_all(part)[0])
        loaded.suites += [suite] if suite else []
        loaded.errors += dict.fromkeys(reader.errors)


class _Reader:
    def __init__(self, file: str, folder: Path, lines: Lines) -> None:
        self.file, self.folder, self.lines = file, folder, lines
        self.errors: list[Unusable] = []

    def suite(self, value: Any) -> Suite | None:
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind != TEST_KIND:
            shown = f"of kind {kind}" if kind else "without a kind"
            self._fault((), f"is {shown}; a test is a document of kind {TEST_KIND}, apiVersion {API_VERSION}")
            return None
        try:
            document = SuiteDocument.model_validate(value)
        except ValidationError as error:
            for location, reason in faults.first(error, SuiteDocument)[0]:
                self._fault(location, _brief(location, reason))
            return None
        policies = [layer for number, name in enumerate(document.policies) for layer in self._policies(name, number)]
        self._check_names(document, policies)
        shared = self._objects(document.cluster, "cluster")
        tests = []
        for number, case in enumerate(document.tests):
            cluster = [*shared, *self._objects(case.cluster, "tests", number, "cluster")]
            if job := self._job(document, number):
                tests.append(PolicyTest(number, case, job, cluster))
        return None if self.errors else Suite(self.file, document, self.lines, policies, tests)

    def _fault(self, location: Location, message: str) -> None:
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
        text = f"{where}: {message}" if where else message
        self.errors.append(Unusable(self.file, files.nearest_line(self.lines, location), text))

    def _policies(self, name: str, number: int) -> list[Layer]:
        path = str(self.folder / name)
        contents = documents.load([path])
        broken = [f"{policy.title}: {fault}" for policy in contents.policies for fault in policy.faults]
        missing = [] if contents.policies or contents.errors else [f"no policy in {path}"]
        for problem in (*contents.errors, *broken, *missing):
            self._fault(("policies", number), str(problem))
        return contents.layers

    def _check_names(self, document: SuiteDocument, policies: Iterable[Layer]) -> None:
        """Report unknown names in `rules`. A misspelt name would hide unexpected findings."""
        ids = finding_ids(policies)
        for number, name in enumerate(document.rules or ()):
            if name not in ids:
                near = closest_name(name, ids)
                hint = f"; did you mean {near}?" if near else ""
                self._fault(("rules", number), f"no rule or injection is called {name}{hint}")

    def _objects(self, entries: Sequence[Any], *location: str | int) -> list[Manifest]:
        return [manifest for n, entry in enumerate(entries) for manifest in self._manifests(entry, (*location, n))]

    def _manifests(self, entry: Any, location: Location) -> list[Manifest]:
        if isinstance(entry, dict):
            try:
                manifests = files.objects(self.file, entry)
            except ManifestError as error:
                self._fault(location, str(error).removeprefix(f"{self.file}: "))
                return []
            unusable = [manifest for manifest in manifests if not manifest.api_version]
            problems = [f"a {manifest.kind} without apiVersion cannot be in a cluster" for manifest in unusable]
        else:
            manifests, errors = files.load([str(self.folder / entry)])
            problems = [*map(str, errors)]
        for problem in problems:
            self._fault(location, problem)
        return manifests

    def _job(self, document: SuiteDocument, number: int) -> Manifest | None:
        own = document.tests[number].job
        location: Location = ("job",) if own is None else ("tests", number, "job")
        entry = document.job if own is None else own
        if entry is None:
            self._fault(("tests", number), "has no job: write one here, or at the start of the file for all tests")
            return None
        before = len(self.errors)
        jobs = [manifest for manifest in self._manifests(entry, location) if manifest.kind == "MPIJob"]
        if len(jobs) != 1 and len(self.errors) == before:
            self._fault(location, f"has {len(jobs)} MPIJobs; a test needs exactly one")
        return jobs[0] if len(jobs) == 1 else None


def _brief(location: Location, reason: str) -> str:
    if not reason.endswith(f"; {faults.HINT}"):
        return reason
    model = Case if location[:1] == ("tests",) else SuiteDocument
    names = ", ".join(info.alias or name for name, info in model.model_fields.items())
    return f"{reason.removesuffix(faults.HINT)}accepted: {names}"


def finding_ids(policies: Iterable[Layer]) -> frozenset[str]:
    custom = (full_id(rule.id) for layer in policies for rule in layer.document.custom_rules)
    return frozenset((*rules.REGISTRY, *injections.REGISTRY, *custom, SCHEMA, REQUIRED_INJECTION, SKIP, EXEMPT))
