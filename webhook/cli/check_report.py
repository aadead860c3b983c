"""The verdicts of `check` in the forms that CI systems read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from webhook import PROGRAM
from webhook.cli import ci_reports, explanations, job_verdict
from webhook.cli.ci_reports import Checked, Rule, unusable
from webhook.cli.files import ManifestError, line_of
from webhook.cli.level_check import LevelVerdict

UNREADABLE: Final = "unreadable"
Verdict = job_verdict.Verdict | LevelVerdict
_UNREADABLE: Final = Rule("The file cannot be read.")


def in_form(
    form: str, verdicts: Iterable[Verdict], errors: Iterable[ManifestError], *, warnings_fail: bool
) -> Iterator[str]:
    """Verdicts and unreadable files, in lines: `junit`, `sarif` or `github`."""
    unread = [unusable(each.file, UNREADABLE, str(each).removeprefix(f"{each.file}: ")) for each in errors]
    found = [*unread, *(_checked(each, as_faults=warnings_fail and form == "junit") for each in verdicts)]
    return ci_reports.in_form(form, found, "check", _rules(found))


def _checked(verdict: Verdict, *, as_faults: bool) -> Checked:
    manifest = verdict.manifest
    problems = [
        replace(each, line=line_of(manifest, each.field) if each.field else None, warns=each.warns and not as_faults)
        for each in verdict.problems()
    ]
    return Checked(manifest.source, verdict.title, line_of(manifest), problems)


def _rules(found: Sequence[Checked]) -> dict[str, Rule]:
    """The rules of the problems."""
    known: dict[str, Any] = {entry.id: entry for entry in explanations.entries()}
    met = sorted({problem.rule for each in found for problem in each.problems})
    return {
        rule: _about(known[rule]) if rule in known else _UNREADABLE if rule == UNREADABLE else Rule(rule)
        for rule in met
    }


def _about(entry: explanations.Explanation) -> Rule:
    more = f"`{PROGRAM} explain {entry.id}` says more."
    return Rule(entry.summary, f"{entry.explanation}\n\n{more}".strip())
