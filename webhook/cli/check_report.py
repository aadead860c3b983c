"""Reports of `check` for CI systems."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from webhook.cli import ci_reports
from webhook.cli.ci_reports import Checked, unusable
from webhook.cli.files import ManifestError, line_of
from webhook.cli.job_verdict import Verdict

UNREADABLE: Final = "unreadable"


def in_form(
    form: str, verdicts: Iterable[Verdict], errors: Iterable[ManifestError], *, warnings_fail: bool
) -> Iterator[str]:
    unread = [unusable(error.file, UNREADABLE, str(error).removeprefix(f"{error.file}: ")) for error in errors]
    results = [*unread, *(_checked(verdict, as_faults=warnings_fail and form == "junit") for verdict in verdicts)]
    return ci_reports.in_form(form, results, "check")


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
