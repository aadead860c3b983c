"""What becomes of each object in files of jobs from elsewhere: its new text, and the report about it."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import click

from webhook.api import yaml
from webhook.cli import job_check, job_world, options
from webhook.cli.files import Manifest, ManifestError
from webhook.cli.job_verdict import Verdict
from webhook.cli.options import REFUSED
from webhook.cli.terminal import UNUSABLE, caution, complain, printable
from webhook.converters.report import Converted, Note, Outcome


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of one object."""

    source: str
    """The file."""
    head: str
    """What became of it in a line, or why it cannot be converted."""
    document: Mapping[str, Any] | None = None
    """What it is now; None where it cannot be converted."""
    notes: Sequence[Note] = ()
    """What became of its fields."""
    verdict: Verdict | None = None
    """On what it is now; None where it was left as it is."""
    is_job: bool = True

    @property
    def good(self) -> bool:
        """Nothing has to be done before it can be submitted, as far as `check` sees."""
        return self.document is not None and (self.verdict is None or self.verdict.allowed)

    def report(self) -> Iterator[str]:
        """In lines; colours are in them."""
        yield self.head
        for outcome in Outcome:
            notes = [note for note in self.notes if note.outcome is outcome]
            if notes:
                yield f"  {caution(outcome.value) if outcome is not Outcome.MAPPED else outcome.value}:"
                yield from (f"    {printable(f'{note.field[:300]}: {note.text}')}" for note in notes)
        if self.verdict is not None:
            yield from self.verdict.in_short()

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "file": self.source,
            "object": self.document,
            "problems": [] if self.document else [self.head],
            "notes": [{"outcome": note.outcome.value, "field": note.field, "text": note.text} for note in self.notes],
            "check": self.verdict.as_json() if self.verdict else None,
        }


def checked(converted: Converted, head: str, source: str) -> Conversion:
    """What a job was converted to, with the verdict of `check` on it."""
    verdict = job_check.check(Manifest(source, converted.document), job_world.of_nothing())
    return Conversion(source, head, converted.document, [*converted.report.notes], verdict)


def end(outcomes: Sequence[Conversion], errors: list[ManifestError], output: str, nothing: str) -> NoReturn:
    """Print the new jobs, and the reports; `nothing` is the error where there is no job and no other."""
    if output == "json":
        options.show(output, (), [outcome.as_json() for outcome in outcomes])
    for outcome in outcomes if output == "text" else ():
        if outcome.document is None:
            complain(outcome.head)
            continue
        click.echo(f"---\n{yaml.dump(outcome.document)}", nl=False)
        for line in outcome.report():
            click.echo(line, err=True)
    if not errors and not any(outcome.is_job for outcome in outcomes):
        errors = [ManifestError(nothing)]
    complain(*errors)
    sys.exit(UNUSABLE if errors else 0 if all(outcome.good for outcome in outcomes) else REFUSED)
