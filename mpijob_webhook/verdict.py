"""The verdict on a job, as text and as HTML for notebooks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from click import unstyle

from webhook.cli import job_check, job_verdict
from webhook.cli.ci_reports import Problem
from webhook.cli.job_world import JobWorld
from webhook.cli.terminal import counted


@dataclass(frozen=True)
class Verdict:
    """The verdict on a job. Its truth value is `allowed`."""

    _verdict: job_verdict.Verdict
    _world: JobWorld

    def __bool__(self) -> bool:
        return self.allowed

    @property
    def allowed(self) -> bool:
        """True if the job would be admitted."""
        return self._verdict.allowed

    @property
    def message(self) -> str:
        """The API server's rejection message; empty for an admitted job."""
        return self._verdict.validation.message

    @property
    def causes(self) -> list[Problem]:
        """The problems for which the job would be rejected. The `message` of each problem includes the fix."""
        return [problem for problem in self._verdict.problems() if not problem.warns]

    @property
    def warnings(self) -> list[Problem]:
        """The problems that cause only a warning."""
        return [*self._verdict.cautions()]

    @cached_property
    def job(self) -> Mapping[str, Any]:
        """The job that would be stored, with injections."""
        return self._verdict.mutation.document or self._verdict.manifest.document

    @property
    def injected(self) -> list[str]:
        """The ids of the injections that change the job."""
        return [entry.id for entry in self._verdict.injected]

    @property
    def not_judged(self) -> list[str]:
        """A line for each reason why rules could not be evaluated."""
        return [*job_check.not_judged([self._verdict], self._world)]

    def as_json(self) -> dict[str, Any]:
        """The verdict in the format of `mpijob-webhook check -o json`."""
        return self._verdict.as_json()

    def __repr__(self) -> str:
        lines = (*self._verdict.as_text(), *self.not_judged)
        return unstyle("\n".join(lines)).removeprefix(f"{self._verdict.manifest.source}: ")

    def _repr_html_(self) -> str:
        return "\n".join(self._html())

    def _html(self) -> Iterator[str]:
        word = "admitted" if self.allowed else "rejected"
        yield f"<p><strong>{escape(self._verdict.title)}: {word}</strong></p>"
        for title, problems in (("Problems", self.causes), ("Warnings", self.warnings)):
            if problems:
                yield f"<p>{title}</p>\n<ol>"
                for problem in problems:
                    field = f"<code>{escape(problem.field)}</code><br>" if problem.field else ""
                    message = escape(problem.message).replace("\n", "<br>")
                    yield f"<li>{field}{message}</li>"
                yield "</ol>"
        if self.allowed and self.injected:
            about = f"{counted(len(self.injected), 'injection')}: {', '.join(self.injected)}"
            changes = (escape(unstyle(line)) for entry in self._verdict.injected for line in entry.as_text())
            yield f"<details><summary>{escape(about)}</summary><pre>{chr(10).join(changes)}</pre></details>"
        yield from (f"<p><small>{escape(line)}</small></p>" for line in self.not_judged)
