"""The verdicts of `check` in the forms that CI systems read."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from webhook import PROGRAM
from webhook.cli import ci_reports, explanations
from webhook.cli.ci_reports import Checked, Problem, Rule
from webhook.cli.field_lines import line_of
from webhook.cli.files import Manifest, ManifestError

NAME: Final = "check"
UNREADABLE: Final = "unreadable"
_UNREADABLE: Final = Rule("The file cannot be read.")


class Verdict(Protocol):
    """On one object."""

    @property
    def manifest(self) -> Manifest:
        """The object."""

    @property
    def title(self) -> str:
        """What it is called, for people."""

    def problems(self) -> Iterator[Problem]:
        """What is wrong with it."""


def in_form(
    form: str, verdicts: Iterable[Verdict], errors: Iterable[ManifestError], *, warnings_fail: bool
) -> Iterator[str]:
    """Verdicts and files that cannot be read, in lines: `junit`, `sarif` or `github`."""
    found = [*map(_unreadable, errors), *map(_checked, verdicts)]
    if form == "github":
        yield from ci_reports.github(found)
    elif form == "sarif":
        yield json.dumps(ci_reports.sarif(found, _rules(found)), indent=2)
    else:
        failing = [replace(each, problems=[*map(_as_fault, each.problems)]) for each in found]
        yield ci_reports.junit(failing if warnings_fail else found, NAME)


def _checked(verdict: Verdict) -> Checked:
    manifest = verdict.manifest
    problems = [
        replace(each, line=line_of(manifest, each.field) if each.field else None) for each in verdict.problems()
    ]
    return Checked(manifest.source, verdict.title, line_of(manifest), problems)


def _unreadable(error: ManifestError) -> Checked:
    problem = Problem(UNREADABLE, str(error).removeprefix(f"{error.file}: "))
    return Checked(error.file, "the file", problems=[problem], unusable=True)


def _as_fault(problem: Problem) -> Problem:
    return replace(problem, warns=False)


def _rules(found: Sequence[Checked]) -> dict[str, Rule]:
    """Those of the problems that there are."""
    known: dict[str, Any] = {entry.id: entry for entry in explanations.entries()}
    met = sorted({problem.rule for each in found for problem in each.problems})
    return {
        rule: _about(known[rule]) if rule in known else _UNREADABLE if rule == UNREADABLE else Rule(rule)
        for rule in met
    }


def _about(entry: explanations.Explanation) -> Rule:
    more = f"`{PROGRAM} explain {entry.id}` says more."
    return Rule(entry.summary, f"{entry.explanation}\n\n{more}".strip())
