"""Tests of policies in files: documents of kind MPIJobPolicyTest, read with their policies, jobs and cluster facts."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

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
from webhook.kit.own_rules import full_id
from webhook.policy import faults
from webhook.policy.document import API_VERSION
from webhook.policy.exemptions import ASKED, REQUIRED_INJECTION
from webhook.policy.layers import Layer

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a file, or what it names, cannot be used."""

    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.message}"


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a document, with what they name."""

    file: str
    document: SuiteDocument
    lines: Mapping[Location, int]
    policies: Sequence[Layer]
    cluster: Sequence[Mapping[str, Any]]
    """Of all tests."""
    clusters: Sequence[Sequence[Mapping[str, Any]]]
    """Of each test besides."""
    jobs: Sequence[Manifest]
    """Of each test, before its changes."""

    def line(self, *location: str | int) -> int | None:
        """The line on which this is written, or what it belongs to."""
        return _line(self.lines, location)


@dataclass(slots=True)
class Loaded:
    """What was found."""

    suites: list[Suite] = field(default_factory=list)
    errors: list[Unusable] = field(default_factory=list)


class _Refused(Exception):
    """What is wrong with a document, fault by fault."""

    def __init__(self, *found: tuple[Location, str]) -> None:
        super().__init__()
        self.found = found


def load(arguments: Iterable[str]) -> Loaded:
    """All tests in these files and folders; of a folder the files that have any, however deep."""
    loaded = Loaded()
    for source, searched in _sources(arguments, loaded):
        shown = STDIN_TITLE if source == STDIN else source
        try:
            content = files.read(source)
        except ManifestError as error:
            loaded.errors.append(Unusable(shown, None, str(error).removeprefix(f"{shown}: ")))
            continue
        if searched and TEST_KIND.encode() not in content:
            continue
        try:
            parts = yaml.split(content)
        except yaml.YamlError as error:
            loaded.errors.append(Unusable(shown, None, str(error)))
            continue
        if not parts:
            loaded.errors.append(Unusable(shown, None, f"is empty; a test is a document of kind {TEST_KIND}"))
        for part in parts:
            _load_part(shown, Path() if source == STDIN else Path(source).parent, part, loaded)
    return loaded


def _sources(arguments: Iterable[str], loaded: Loaded) -> Iterator[tuple[str, bool]]:
    """Each file, and whether it was only found in a folder."""
    for argument in arguments:
        if argument == STDIN or not Path(argument).is_dir():
            yield argument, False
            continue
        found: list[Path] = []
        for folder, folders, names in os.walk(argument, onerror=partial(_unreadable, loaded)):
            folders[:] = [name for name in folders if not name.startswith(".")]
            found += [Path(folder, name) for name in names if not name.startswith(".")]
        for path in sorted(found):
            if path.suffix in files.SUFFIXES and path.is_file():
                yield str(path), True


def _unreadable(loaded: Loaded, error: OSError) -> None:
    loaded.errors.append(Unusable(str(error.filename), None, str(error.strerror)))


def _load_part(file: str, folder: Path, text: str, loaded: Loaded) -> None:
    lines = yaml.lines(text)
    try:
        loaded.suites.append(_suite(file, folder, yaml.load_all(text)[0], lines))
    except _Refused as refused:
        for location, message in refused.found:
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
            told = f"{where}: {message}" if where else message
            loaded.errors.append(Unusable(file, _line(lines, location), told))


def _suite(file: str, folder: Path, value: Any, lines: Mapping[Location, int]) -> Suite:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind != TEST_KIND:
        what = f"of kind {kind}" if kind else "without a kind"
        raise _Refused(((), f"is {what}; a test is a document of kind {TEST_KIND}, apiVersion {API_VERSION}"))
    try:
        document = SuiteDocument.model_validate(value)
    except ValidationError as error:
        found = faults.of(error, SuiteDocument)
        raise _Refused(*((where, _brief(where, why)) for where, why in found)) from None
    refused: list[tuple[Location, str]] = []
    policies = [
        layer
        for number, name in enumerate(document.policies)
        for layer in _policies(str(folder / name), ("policies", number), refused)
    ]
    refused += _called_nothing(document, policies)
    cluster = _objects(document.cluster, ("cluster",), file, folder, refused)
    clusters = [
        _objects(case.cluster, ("tests", number, "cluster"), file, folder, refused)
        for number, case in enumerate(document.tests)
    ]
    jobs = [_job(document, number, file, folder, refused) for number in range(len(document.tests))]
    if refused:
        raise _Refused(*dict.fromkeys(refused))
    return Suite(
        file, document, lines, policies, [each.document for each in cluster],
        [[each.document for each in found] for found in clusters], [job for job in jobs if job is not None],
    )  # fmt: skip


def _brief(location: Location, reason: str) -> str:
    """The fault without the hint to rules, and with what is accepted instead."""
    if not reason.endswith(f"; {faults.HINT}"):
        return reason
    model = Case if location[:1] == ("tests",) else SuiteDocument
    known = ", ".join(info.alias or name for name, info in model.model_fields.items())
    return f"{reason.removesuffix(faults.HINT)}accepted: {known}"


def _policies(path: str, location: Location, refused: list[tuple[Location, str]]) -> list[Layer]:
    found = documents.load([path])
    refused += [(location, str(error)) for error in found.errors]
    refused += [(location, f"{policy.title}: {fault}") for policy in found.policies for fault in policy.faults]
    if not found.policies and not found.errors:
        refused.append((location, f"no policy in {path}"))
    return found.layers


def _called_nothing(document: SuiteDocument, policies: Iterable[Layer]) -> Iterator[tuple[Location, str]]:
    """What of `rules` names nothing: a slip there would let findings pass that were meant to count."""
    known = findings_known(policies)
    for number, name in enumerate(document.rules or ()):
        if name not in known:
            near = closest_name(name, known)
            meant = f", did you mean {near}?" if near else ""
            yield ("rules", number), f"no rule or injection is called {name}{meant}"


def findings_known(policies: Iterable[Layer]) -> frozenset[str]:
    """What findings may be of: rules, injections and own rules, and annotations that have no effect."""
    own = (full_id(each.id) for layer in policies for each in layer.document.own_rules)
    return frozenset((*rules.REGISTRY, *injections.REGISTRY, *own, SCHEMA, REQUIRED_INJECTION, SKIP, ASKED))


def _objects(
    given: Sequence[Any], location: Location, file: str, folder: Path, refused: list[tuple[Location, str]]
) -> list[Manifest]:
    return [
        manifest
        for number, each in enumerate(given)
        for manifest in _manifests(each, (*location, number), file, folder, refused)
    ]


def _manifests(
    given: Any, location: Location, file: str, folder: Path, refused: list[tuple[Location, str]]
) -> list[Manifest]:
    """The objects of a file, or the one that stands there."""
    try:
        if isinstance(given, dict):
            return [_complete(manifest) for manifest in files.objects(file, given)]
        found, errors = files.load([str(folder / given)])
    except ManifestError as error:
        refused.append((location, str(error).removeprefix(f"{file}: ")))
        return []
    refused += [(location, str(error)) for error in errors]
    return found


def _complete(manifest: Manifest) -> Manifest:
    """What stands in a test was written by hand: of an object without a version nobody would take notice."""
    if not manifest.api_version:
        raise ManifestError(f"a {manifest.kind} without apiVersion is nothing that a cluster has")
    return manifest


def _job(
    document: SuiteDocument, number: int, file: str, folder: Path, refused: list[tuple[Location, str]]
) -> Manifest | None:
    own = document.tests[number].job
    given, location = (document.job, ("job",)) if own is None else (own, ("tests", number, "job"))
    if given is None:
        refused.append((("tests", number), "has no job: write one here, or at the start of the file for all tests"))
        return None
    before = len(refused)
    found = _manifests(given, location, file, folder, refused)
    jobs = [manifest for manifest in found if manifest.kind == "MPIJob"]
    if len(jobs) != 1 and len(refused) == before:
        refused.append((location, f"has {len(jobs)} MPIJobs, and a test is about one"))
    return jobs[0] if len(jobs) == 1 else None


def _line(lines: Mapping[Location, int], location: Location) -> int | None:
    return next((lines[location[:end]] for end in range(len(location), -1, -1) if location[:end] in lines), None)
