"""The results of the commands `convert ...`."""

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
    """The result for one object."""

    source: str
    head: str
    """The result in a line, or the reason why the object cannot be converted."""
    document: Mapping[str, Any] | None = None
    """The new object, if any."""
    notes: Sequence[Note] = ()
    verdict: Verdict | None = None
    is_job: bool = True
    needs: Mapping[str, Any] | None = None
    """An object that must be created before the new object."""

    @property
    def good(self) -> bool:
        """True if there is a new object, and `check` does not reject it."""
        return self.document is not None and (self.verdict is None or self.verdict.allowed)

    def report(self) -> Iterator[str]:
        yield self.head
        for outcome in Outcome:
            notes = [note for note in self.notes if note.outcome is outcome]
            if notes:
                yield f"  {caution(outcome.value) if outcome is not Outcome.MAPPED else outcome.value}:"
                yield from (f"    {printable(f'{note.field[:300]}: {note.text}')}" for note in notes)
        if self.verdict is not None:
            yield from self.verdict.as_text(short=True)

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.source,
            "object": self.document,
            "problems": [] if self.document else [self.head],
            "notes": [{"outcome": note.outcome.value, "field": note.field, "text": note.text} for note in self.notes],
            "check": self.verdict.as_json() if self.verdict else None,
            **({"needs": self.needs} if self.needs else {}),
        }


def checked(converted: Converted, head: str, source: str) -> Conversion:
    verdict = job_check.check(Manifest(source, converted.document), job_world.of_nothing())
    return Conversion(source, head, converted.document, [*converted.report.notes], verdict)


def end(outcomes: Sequence[Conversion], errors: list[ManifestError], output: str, nothing: str) -> NoReturn:
    """Print the results, and exit. `nothing` is the error message for files without a job."""
    if output == "json":
        options.show(output, (), [outcome.as_json() for outcome in outcomes])
    for outcome in outcomes if output == "text" else ():
        if outcome.document is None:
            complain(outcome.head)
            continue
        for document in filter(None, (outcome.needs, outcome.document)):
            click.echo(f"---\n{yaml.dump(document)}", nl=False)
        for line in outcome.report():
            click.echo(line, err=True)
    if not errors and not any(outcome.is_job for outcome in outcomes):
        errors = [ManifestError(nothing)]
    complain(*errors)
    sys.exit(UNUSABLE if errors else 0 if all(outcome.good for outcome in outcomes) else REFUSED)
