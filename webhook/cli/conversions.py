"""What becomes of each object in files of jobs from elsewhere: its new text, and the report about it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webhook.api import mpijob, yaml
from webhook.cli import job_check, job_world
from webhook.cli.files import Manifest
from webhook.cli.job_verdict import Verdict
from webhook.cli.terminal import caution, heading, printable
from webhook.converters import older_jobs
from webhook.converters.options import Options
from webhook.converters.report import ConversionError, Converted, Note, Outcome, Report
from webhook.converters.sagemaker import job as training_job
from webhook.converters.sagemaker import options as sagemaker_options


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of one object."""

    text: str = ""
    """Its YAML; empty where it cannot be converted."""
    report: Sequence[str] = ()
    """In lines; colours are in them."""
    problems: Sequence[str] = ()
    """Why it cannot be converted."""
    is_job: bool = True
    good: bool = True
    """Nothing has to be done before it can be submitted, as far as `check` sees."""
    source: str = ""
    """The file."""
    document: Mapping[str, Any] | None = None
    """What it is now; None where it cannot be converted."""
    notes: Sequence[Note] = ()
    """What became of its fields."""
    verdict: Verdict | None = None
    """On what it is now; None where it was left as it is."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "file": self.source,
            "object": self.document,
            "problems": [*self.problems],
            "notes": [{"outcome": note.outcome.value, "field": note.field, "text": note.text} for note in self.notes],
            "check": self.verdict.as_json() if self.verdict else None,
        }


def convert(manifest: Manifest, options: Options) -> Conversion:
    """The object as v2beta1, checked; one that is no older job as it is."""
    if not job_check.is_job(manifest):
        told = f"{manifest.source}: {manifest.kind} {manifest.title}: is no MPIJob, left as it is"
        return replace(_as_it_is(manifest, printable(told)), is_job=False)
    title = printable(f"{manifest.source}: {'/'.join(filter(None, (manifest.namespace, manifest.title)))}")
    if manifest.api_version == mpijob.API_VERSION:
        told = f"{title}: is of {mpijob.API_VERSION} already, left as it is"
        return _as_it_is(manifest, told)
    try:
        converted = older_jobs.convert(manifest.document, options)
    except ConversionError as error:
        return Conversion(problems=[f"{title}: {error}"], good=False, source=manifest.source)
    head = f"{heading(title)}: {manifest.api_version} is {mpijob.API_VERSION} now"
    return _checked(converted, head, manifest.source)


def of_training_job(source: str, document: Any, options: sagemaker_options.Options) -> Conversion:
    """A training job of SageMaker as an MPIJob, checked."""
    name = document.get("TrainingJobName") if isinstance(document, dict) else None
    title = printable(f"{source}: {name}" if isinstance(name, str) else source)
    try:
        converted = training_job.convert(document, options)
    except ConversionError as error:
        return Conversion(problems=[f"{title}: {error}"], good=False, source=source)
    head = f"{heading(title)}: is MPIJob {converted.document['metadata']['name']} of {mpijob.API_VERSION} now"
    return _checked(converted, head, source)


def _checked(converted: Converted, head: str, source: str) -> Conversion:
    verdict = job_check.check(Manifest(source, converted.document), job_world.of_nothing())
    return Conversion(
        _text(converted.document),
        [head, *_notes(converted.report), *verdict.in_short()],
        good=verdict.allowed,
        source=source,
        document=converted.document,
        notes=[*converted.report.notes],
        verdict=verdict,
    )


def _as_it_is(manifest: Manifest, told: str) -> Conversion:
    document = manifest.written or manifest.document
    return Conversion(_text(document), [told], source=manifest.source, document=document)


def _text(document: dict[str, object]) -> str:
    return f"---\n{yaml.dump(document)}"


def _notes(report: Report) -> Iterator[str]:
    for outcome in Outcome:
        notes = list(report.of(outcome))
        if notes:
            yield f"  {caution(outcome.value) if outcome is not Outcome.MAPPED else outcome.value}:"
            yield from (f"    {printable(f'{note.field[:300]}: {note.text}')}" for note in notes)
