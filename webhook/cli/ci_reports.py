"""Reports for CI systems: JUnit and GitHub's annotations.

https://github.com/testmoapp/junitxml,
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from webhook.cli.files import STDIN_TITLE
from webhook.cli.terminal import printable


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem, and its place in a file."""

    rule: str
    message: str
    line: int | None = None
    field: str = ""
    warns: bool = False
    """Warnings do not make the check fail."""

    @property
    def text(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked test, job or file, with its problems."""

    file: str
    name: str
    line: int | None = None
    problems: Sequence[Problem] = ()
    unusable: bool = False
    """True if the file or test could not be checked."""

    @property
    def faults(self) -> Sequence[Problem]:
        return [problem for problem in self.problems if not problem.warns]

    @property
    def warnings(self) -> Sequence[Problem]:
        return [problem for problem in self.problems if problem.warns]


def unusable(file: str, rule: str, message: str, line: int | None = None) -> Checked:
    return Checked(file, "the file", line, [Problem(rule, message, line)], unusable=True)


def in_form(form: str, results: Sequence[Checked], name: str) -> Iterator[str]:
    """The lines of a report. `form` is `junit` or `github`."""
    if form == "junit":
        yield junit(results, name)
    else:
        yield from github(results)


def junit(results: Iterable[Checked], name: str) -> str:
    """A testsuite for each file, with a testcase for each result. Warnings are output, because JUnit has none."""
    from xml.etree import ElementTree as ET

    everything = list(results)
    top = ET.Element("testsuites", {"name": name, **_counts(everything)})
    for file, group in groupby(everything, key=lambda result: result.file):
        members = list(group)
        suite = ET.SubElement(top, "testsuite", {"name": printable(file), **_counts(members)})
        for result in members:
            attributes = {"name": printable(result.name), "classname": printable(file), "file": printable(file)}
            case = ET.SubElement(suite, "testcase", attributes | ({"line": str(result.line)} if result.line else {}))
            if result.faults:
                first, *more = (_with_line(file, problem) for problem in result.faults)
                kind = "error" if result.unusable else "failure"
                about = {"message": first, "type": result.faults[0].rule}
                ET.SubElement(case, kind, about).text = "\n".join((first, *more))
            if result.warnings:
                warnings = (f"warning: {_with_line(file, problem)}" for problem in result.warnings)
                ET.SubElement(case, "system-out").text = "\n".join(warnings)
    ET.indent(top)
    return ET.tostring(top, encoding="unicode", xml_declaration=True)


def github(results: Iterable[Checked]) -> Iterator[str]:
    for result in results:
        for problem in result.problems:
            line = problem.line or result.line
            # Without a file the annotation belongs to the whole run.
            place = {} if result.file == STDIN_TITLE else {"file": result.file, "line": line}
            properties = {**place, "title": result.name}
            attributes = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value)
            yield f"::{'warning' if problem.warns else 'error'} {attributes}::{_data(problem.text)}"


def _counts(results: Sequence[Checked]) -> dict[str, str]:
    bad = [result for result in results if result.faults]
    errors = sum(result.unusable for result in bad)
    return {"tests": str(len(results)), "failures": str(len(bad) - errors), "errors": str(errors)}


def _with_line(file: str, problem: Problem) -> str:
    where = f"{file}:{problem.line}: " if problem.line else ""
    return printable(f"{where}{problem.text}")


def _data(text: str) -> str:
    return "%0A".join(printable(line) for line in text.replace("%", "%25").split("\n"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
