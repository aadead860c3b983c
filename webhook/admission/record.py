"""What was injected into a job, recorded on the job: the annotation `training.openshift.io/injected`.

The record is a JSON object, id of the injection to places (see `places`). What an update does with it: `restore`.

Whoever may change a job can change its record. He only decides what of his own job comes back in an update, and always
a value that the stored job has; no verdict reads it. The checksum guards against mistakes, not against forgery.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from webhook import injections
from webhook.admission import places
from webhook.admission.places import Lists, RecordedPlace
from webhook.api.annotations import INJECTED
from webhook.kit.patch import MAX_ANNOTATIONS, PatchBuilder, Path

PATH: Final[Path] = ("metadata", "annotations", INJECTED)
# More than any sensible job needs; what is beyond is not restored.
MAX_BYTES: Final = 8192
MAX_PLACES: Final = 128
# The author of what an injection left that is no longer there: ids are labels of metrics, so none is taken on trust.
RETIRED: Final = "retired"

_SHORT = re.compile(r"(Launcher|Worker):(?=/)")
_decoder = msgspec.json.Decoder(dict[str, list[str]])


def read(document: Any) -> list[RecordedPlace]:
    """The places in the record on a job, none where it has no record or one that cannot be read."""
    try:
        written = document["metadata"]["annotations"][INJECTED]
        recorded = _decoder.decode(written) if len(written) <= MAX_BYTES else {}
    except (LookupError, TypeError, msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    found = []
    for author, texts in recorded.items():
        for text in texts:
            short, _, checksum = text.rpartition(" ")
            path = _SHORT.sub(r"/spec/mpiReplicaSpecs/\1/template", short, count=1)
            if path.startswith("/"):
                known = author if author in injections.REGISTRY else RETIRED
                found.append(RecordedPlace(known, places.shortened(path), checksum))
    return found[:MAX_PLACES]


def holding(document: Any) -> list[RecordedPlace]:
    """Those of the recorded places that have what was injected there."""
    lists = Lists()
    return [place for place in read(document) if lists.value(document, place) is not None]


def write(builder: PatchBuilder) -> None:
    """Record on the job what `builder` added to it, with what an earlier round recorded and the job still has."""
    new = list(islice(places.of(builder.additions, builder.document), MAX_PLACES))
    if not new:
        return
    earlier = holding(builder.document) if INJECTED in _annotations(builder.document) else []
    if text := _text(dict.fromkeys([*earlier, *new]), _room(builder.document)):
        builder.write_own(PATH, text)


def rewrite(builder: PatchBuilder, recorded: Iterable[RecordedPlace]) -> None:
    """Record these places and no others."""
    builder.write_own(PATH, _text(dict.fromkeys(recorded), _room(builder.document)) or "{}")


def _text(found: Iterable[RecordedPlace], room: int) -> str:
    """The record of as many places as there is room for, in order."""
    kept = [*islice(found, MAX_PLACES)]
    whole = _written(kept)
    return whole if len(whole.encode()) <= room else _written([*_fitting(kept, room)])


def _written(found: Sequence[RecordedPlace]) -> str:
    grouped: dict[str, list[str]] = {place.author: [] for place in found}
    for place in found:
        grouped[place.author].append(place.text)
    return msgspec.json.encode(grouped).decode() if grouped else ""


def _fitting(found: Iterable[RecordedPlace], room: int) -> Iterator[RecordedPlace]:
    """The first of them, at most so many that their record has `room` bytes."""
    authors = set()
    size = len("{}")
    for place in found:
        size += len(msgspec.json.encode(place.text)) + len(",")
        if place.author not in authors:
            size += len(msgspec.json.encode(place.author)) + len(":[],")
        if size > room:
            return
        authors.add(place.author)
        yield place


def _room(document: Any) -> int:
    """How long the record may be beside the other annotations: a job is never refused for it."""
    others = {**_annotations(document), INJECTED: ""}
    taken = len("".join([*others, *others.values()]).encode())
    return min(MAX_BYTES, MAX_ANNOTATIONS - taken)


def _annotations(document: Any) -> dict[str, str]:
    return (document.get("metadata") or {}).get("annotations") or {}
