"""Outcomes in the forms that CI systems read: JUnit, SARIF and GitHub's annotations.

Each is a few lines of a published format, less than the packages that write it:
https://docs.oasis-open.org/sarif/sarif/v2.1.0/, https://github.com/testmoapp/junitxml and
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from webhook import PROGRAM, __version__
from webhook.cli.terminal import printable

SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    rule: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What was looked at: a test, a job, a file."""

    file: str
    name: str
    line: int | None = None
    problems: Sequence[Problem] = ()
    unusable: bool = False
    """It could not be looked at, for the reasons in `problems`."""


def junit(found: Iterable[Checked], name: str) -> str:
    """A testsuite for each file, a testcase for each thing that was looked at."""
    everything = list(found)
    top = ET.Element("testsuites", {"name": name, **_counts(everything)})
    for file, group in groupby(everything, key=lambda each: each.file):
        members = list(group)
        suite = ET.SubElement(top, "testsuite", {"name": printable(file), **_counts(members)})
        for each in members:
            attributes = {"name": printable(each.name), "classname": printable(file), "file": printable(file)}
            case = ET.SubElement(suite, "testcase", attributes | ({"line": str(each.line)} if each.line else {}))
            if each.problems:
                first, *more = (_with_line(file, problem) for problem in each.problems)
                kind = "error" if each.unusable else "failure"
                about = {"message": first, "type": each.problems[0].rule}
                ET.SubElement(case, kind, about).text = "\n".join((first, *more))
    ET.indent(top)
    return ET.tostring(top, encoding="unicode", xml_declaration=True)


def sarif(found: Iterable[Checked], rules: Mapping[str, str]) -> dict[str, Any]:
    """A log with one run; `rules` are the ids that a problem may have, with what each means."""
    results = [
        {
            "ruleId": problem.rule,
            "level": "error",
            "message": {"text": f"{each.name}: {problem.message}"},
            "locations": [{"physicalLocation": _place(each.file, problem.line or each.line)}],
        }
        for each in found
        for problem in each.problems
    ]
    described = [{"id": rule, "shortDescription": {"text": meaning}} for rule, meaning in rules.items()]
    driver = {"name": PROGRAM, "version": __version__, "rules": described}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def github(found: Iterable[Checked]) -> Iterator[str]:
    """A line for each problem, which GitHub shows beside the line of the file."""
    for each in found:
        for problem in each.problems:
            place = {"file": each.file, "line": problem.line or each.line, "title": each.name}
            properties = ",".join(f"{key}={_property(str(value))}" for key, value in place.items() if value)
            yield f"::error {properties}::{_data(problem.message)}"


def _counts(found: Sequence[Checked]) -> dict[str, str]:
    bad = [each for each in found if each.problems]
    errors = sum(each.unusable for each in bad)
    return {"tests": str(len(found)), "failures": str(len(bad) - errors), "errors": str(errors)}


def _with_line(file: str, problem: Problem) -> str:
    where = f"{file}:{problem.line}: " if problem.line else ""
    return printable(f"{where}{problem.message}")


def _place(file: str, line: int | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(file)}}
    return place | ({"region": {"startLine": line}} if line else {})


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
