"""On which lines of a file the fields of its objects stand."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from webhook.api import yaml
from webhook.cli.files import Manifest
from webhook.cli.policy import job_fields


def line_of(manifest: Manifest, path: str = "") -> int | None:
    """The line (from 1) of the field at `path` in an object, else of what it would be in; None where no file is known.

    Paths are written as messages have them.
    """
    if not manifest.content:
        return None
    lines = _lines(manifest.content)[manifest.number - 1]
    place = (*manifest.place, *job_fields.place(manifest.written or manifest.document, path))
    return next((lines[place[:end]] for end in range(len(place), -1, -1) if place[:end] in lines), None)


# The objects of a file are asked about in turn.
@lru_cache(maxsize=1)
def _lines(content: bytes) -> Sequence[Mapping[tuple[str | int, ...], int]]:
    """Of each document that is not empty."""
    return [yaml.lines(part) for part in yaml.split(content)]
