"""Findings about what was injected say so: nobody is told that a value is wrong as if it were the user's own.

Who wrote a value is read from the job's record (`record`), which changes no verdict, only its words.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec

from webhook.admission import record
from webhook.admission.messages import Finding
from webhook.admission.places import Lists
from webhook.api.annotations import INJECTED
from webhook.api.document import object_of
from webhook.api.mpijob import MPIJob
from webhook.kit.settings import Action

_PART = re.compile(r"\[([^\]]*)\]?|([^.\[]+)")
_FIX = "Write your own value there, or ask your administrator."


def named(
    found: Iterable[tuple[Finding, Action]], job: MPIJob, document: msgspec.Raw
) -> Iterator[tuple[Finding, Action]]:
    """The findings, with the injection that wrote the field that each is about."""
    found = list(found)
    if not found or INJECTED not in job.annotations:
        yield from found
        return
    authors = _authors({_tokens(finding.violation.path) for finding, _ in found}, job, document)
    for finding, action in found:
        author = authors.get(_tokens(finding.violation.path))
        yield (finding if author is None else _by(author, finding)), action


def _authors(wanted: Collection[tuple[str, ...]], job: MPIJob, document: msgspec.Raw) -> Mapping[tuple[str, ...], str]:
    """By which injections the fields were written, of those that are `wanted`."""
    recorded = record.read({"metadata": {"annotations": job.annotations}})
    meant = [(tokens, place) for place in recorded if (tokens := tuple(place.tokens)) in wanted]
    if not meant:
        return {}
    written, lists = object_of(document), Lists()
    return {tokens: place.author for tokens, place in meant if lists.value(written, place) is not None}


def _tokens(path: str) -> tuple[str, ...]:
    return tuple(key or name for key, name in _PART.findall(path))


def _by(author: str, finding: Finding) -> Finding:
    violation = finding.violation
    message = f"{violation.message}, which the injection {author} wrote"
    return replace(finding, violation=replace(violation, message=message, fix=_FIX))
