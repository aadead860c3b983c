"""What came of tests of policies: for people, for programs, and for CI systems."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.cli import ci_reports
from webhook.cli.ci_reports import Checked, Problem
from webhook.cli.policy.suite import Unusable
from webhook.cli.policy.suite_run import BROKEN, KINDS, Outcome
from webhook.cli.terminal import bad, counted, good, heading, printable

NAME = "policy test"


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """All tests that were run, and what could not be read."""

    outcomes: Sequence[Outcome]
    errors: Sequence[Unusable]

    @property
    def failed(self) -> bool:
        """Whether a test failed."""
        return not all(outcome.passed for outcome in self.outcomes)

    @property
    def unusable(self) -> bool:
        """Whether something could not be run, or there is nothing."""
        return bool(self.errors) or not self.outcomes or any(outcome.broken for outcome in self.outcomes)

    def in_form(self, form: str, *, quiet: bool) -> Iterator[str]:
        """In lines: `text`, `json`, `junit`, `sarif` or `github`."""
        if form == "text":
            yield from self.as_text(quiet=quiet)
        elif form == "json":
            yield json.dumps(self.as_json(), indent=2)
        elif form == "junit":
            yield ci_reports.junit(self._checked(), NAME)
        elif form == "sarif":
            yield json.dumps(ci_reports.sarif(self._checked(), KINDS), indent=2)
        else:
            yield from ci_reports.github(self._checked())

    def as_text(self, *, quiet: bool) -> Iterator[str]:
        """For people, in lines; with `quiet` the failed tests alone."""
        file = ""
        for outcome in self.outcomes:
            if quiet and outcome.passed:
                continue
            if outcome.file != file:
                file = outcome.file
                yield heading(printable(file))
            yield f"  {good('ok') if outcome.passed else bad('FAILED')}  {printable(outcome.name)}"
            for failure in outcome.failures:
                where = f"line {failure.line}: " if failure.line else ""
                yield f"    {printable(f'{where}{failure.message}')}"
        passed = sum(outcome.passed for outcome in self.outcomes)
        if self.outcomes:
            yield f"{counted(len(self.outcomes), 'test')}: {passed} passed, {len(self.outcomes) - passed} failed"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "tests": [outcome.as_json() for outcome in self.outcomes],
            "errors": [{"file": each.file, "line": each.line, "message": each.message} for each in self.errors],
            "passed": sum(outcome.passed for outcome in self.outcomes),
            "failed": sum(not outcome.passed for outcome in self.outcomes),
        }

    def _checked(self) -> Iterator[Checked]:
        for error in self.errors:
            yield Checked(
                error.file, "the file", error.line, (Problem(BROKEN, error.message, error.line),), unusable=True
            )
        for outcome in self.outcomes:
            problems = [Problem(each.kind, each.message, each.line) for each in outcome.failures]
            yield Checked(outcome.file, outcome.name, outcome.line, problems, unusable=outcome.broken)
