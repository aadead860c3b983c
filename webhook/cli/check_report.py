"""Reports of `check` for CI systems."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from webhook import PROGRAM
from webhook.cli import ci_reports, explanations
from webhook.cli.ci_reports import Checked, Rule, unusable
from webhook.cli.files import ManifestError, line_of
from webhook.cli.job_verdict import Verdict

UNREADABLE: Final = "unreadable"


def in_form(
    form: str, verdicts: Iterable[Verdict], errors: Iterable[ManifestError], *, warnings_fail: bool
) -> Iterator[str]:
    unread = [unusable(error.file, UNREADABLE, str(error).removeprefix(f"{error.file}: ")) for error in errors]
    results = [*unread, *(_checked(verdict, as_faults=warnings_fail and form == "junit") for verdict in verdicts)]
    return ci_reports.in_form(form, results, "check", _rules(results))


def _checked(verdict: Verdict, *, as_faults: bool) -> Checked:
    manifest = verdict.manifest
    problems = [
        replace(
            problem,
            line=line_of(manifest, problem.field) if problem.field else None,
            warns=problem.warns and not as_faults,
        )
        for problem in verdict.problems()
    ]
    return Checked(manifest.source, verdict.title, line_of(manifest), problems)


def _rules(results: Sequence[Checked]) -> dict[str, Rule]:
    described = {entry.id: _about(entry) for entry in explanations.entries()}
    described[UNREADABLE] = Rule("The file cannot be read.")
    ids = sorted({problem.rule for result in results for problem in result.problems})
    return {rule: described.get(rule, Rule(rule)) for rule in ids}


def _about(entry: explanations.Explanation) -> Rule:
    more = f"`{PROGRAM} explain {entry.id}` says more."
    return Rule(entry.summary, f"{entry.explanation}\n\n{more}".strip())
