"""Findings about what was injected say so: nobody is told that a value is wrong as if it were the user's own.

Who wrote a value is read from the job's record (`record`), which changes no verdict, only its words.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from webhook.admission import record
from webhook.admission.messages import Finding
from webhook.api.annotations import INJECTED
from webhook.api.mpijob import MPIJob
from webhook.kit.settings import Action

_PART = re.compile(r"\[([^\]]*)\]|([^.\[]+)")
_FIX = "Write your own value there, or ask your administrator."


def named(
    found: Iterable[tuple[Finding, Action]], job: MPIJob, document: msgspec.Raw
) -> Iterator[tuple[Finding, Action]]:
    """The findings, with the injection that wrote the field that each is about."""
    found = list(found)
    if not found or INJECTED not in job.annotations:
        yield from found
        return
    authors = {tuple(place.tokens): place.author for place in record.holding(msgspec.json.decode(document))}
    for finding, action in found:
        author = authors.get(_tokens(finding.violation.path))
        yield (finding if author is None else _by(author, finding)), action


def _tokens(path: str) -> tuple[str, ...]:
    return tuple(key or name for key, name in _PART.findall(path))


def _by(author: str, finding: Finding) -> Finding:
    violation = finding.violation
    message = f"{violation.message}, which the injection {author} wrote"
    return replace(finding, violation=replace(violation, message=message, fix=_FIX))
