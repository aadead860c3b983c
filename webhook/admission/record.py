"""What was injected into a job, recorded on the job: the annotation `training.openshift.io/injected`.

`kubectl apply` replaces whole lists of a custom resource, server-side apply takes out what the same file once brought
with our additions, and `kubectl replace` everything that the file has not. An update restores what the record of the
stored job names, as far as the stored job still has it as it was injected, and nothing else: a toleration of the user's
own stays away once it is taken out, and nothing that a later version or policy would add comes to an old job.

The record is a JSON object, id of the injection to places. A place is a JSON pointer and a checksum of the value;
`Launcher:` and `Worker:` stand for their pod templates, and the item of a list is named by its key, `name=mpi`, by its
position, or by nothing but the checksum, `-`.

Whoever may change a job can change its record. He only decides what of his own job comes back in an update, and always
a value that the stored job has; no verdict reads it. The checksum guards against mistakes, not against forgery.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from zlib import crc32

import msgspec

from webhook import injections
from webhook.api.annotations import INJECTED
from webhook.api.networks import NETWORKS, extends
from webhook.kit.patch import Addition, PatchBuilder, Path, pointer

PATH: Final[Path] = ("metadata", "annotations", INJECTED)
# More than any sensible job needs; what is beyond is not restored.
MAX_BYTES: Final = 8192
MAX_PLACES: Final = 128
# What all annotations of an object may have together (apimachinery `pkg/api/validation/objectmeta.go`).
MAX_ANNOTATIONS: Final = 256 * 1024
# The author of what an injection left that is no longer there: ids are labels of metrics, so none is taken on trust.
RETIRED: Final = "retired"
APPENDED: Final = "-"
# What the API server has filled in already where a file drops these fields (the CRD's schema).
DEFAULTS: Final[Mapping[str, object]] = {"/spec/launcherCreationPolicy": "AtStartup", "/spec/runPolicy/suspend": False}

_TEMPLATE = re.compile(r"/spec/mpiReplicaSpecs/(Launcher|Worker)/template(?=/)")
_SHORT = re.compile(r"(Launcher|Worker):(?=/)")
_CHECKSUM_LENGTH: Final = 8
_decoder = msgspec.json.Decoder(dict[str, list[str]])


@dataclass(frozen=True, slots=True)
class RecordedPlace:
    """Where something was injected, and the checksum of what."""

    author: str
    pointer: str
    checksum: str

    @property
    def text(self) -> str:
        """As it stands in the record."""
        short = _TEMPLATE.sub(r"\1:", self.pointer, count=1)
        return f"{short} {self.checksum}"

    @property
    def tokens(self) -> list[str]:
        """The parts of the pointer."""
        return [token.replace("~1", "/").replace("~0", "~") for token in self.pointer.split("/")[1:]]


def read(document: Any) -> list[RecordedPlace]:
    """The places in the record on a job, none where it has no record or one that cannot be read."""
    try:
        text = document["metadata"]["annotations"][INJECTED]
        recorded = _decoder.decode(text) if len(text) <= MAX_BYTES else {}
    except (LookupError, TypeError, msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    places = []
    for author, texts in recorded.items():
        for place in texts:
            short, _, checksum = place.rpartition(" ")
            path = _SHORT.sub(r"/spec/mpiReplicaSpecs/\1/template", short, count=1)
            if path.startswith("/"):
                places.append(RecordedPlace(author if author in injections.REGISTRY else RETIRED, path, checksum))
    return places[:MAX_PLACES]


def write(builder: PatchBuilder) -> None:
    """Record on the job what `builder` added to it, with what an earlier round recorded and the job still has."""
    new = list(islice(_places(builder.additions, builder.document), MAX_PLACES))
    if not new:
        return
    lists = _Lists()
    earlier = [place for place in read(builder.document) if lists.value(builder.document, place) is not None]
    if text := _text(dict.fromkeys([*earlier, *new]), _room(builder.document)):
        builder.write_own(PATH, text)


def restore(stored: Any, builder: PatchBuilder, *, skipped: frozenset[str]) -> None:
    """Restore what the record of the `stored` job names and the new one lacks, and the record itself."""
    places = read(stored)
    lists = _Lists()
    lost: set[str] = set()
    for place in places:
        if place.author in skipped or (value := lists.value(stored, place)) is None:
            continue
        *above, last = place.tokens
        where, parent = lists.counterpart(stored, builder.document, above)
        if where is None:
            continue
        builder.author = place.author
        if not isinstance(parent, list):
            # A default of the schema is taken for a loss only beside another loss: Kueue starts a job by `suspend`.
            over = DEFAULTS.get(place.pointer) if place.author in lost else None
            own = builder.get((*where, last))
            if last == NETWORKS and isinstance(own, str) and extends(value, own):
                over = own
            restored = builder.add((*where, last), value, over=over)
        elif last == APPENDED:
            restored = builder.append(where, value, key=None)
        else:
            restored = "=" in last and builder.append(where, value, key=last.partition("=")[0])
        if restored:
            lost.add(place.author)
    if places and builder.get(PATH) is None:
        builder.write_own(PATH, stored["metadata"]["annotations"][INJECTED])


class _Lists:
    """Finds items of lists by what stands for them in a place; each list is indexed once."""

    def __init__(self) -> None:
        self._indices: dict[tuple[int, str], dict[object, int]] = {}

    def value(self, document: Any, place: RecordedPlace) -> Any:
        """What `place` names in `document`, None where that is not there, or not as it was injected."""
        *above, last = place.tokens
        for token in above:
            document = self._child(document, token)
        value = self._child(document, place.checksum if last == APPENDED else last)
        return None if value is None or _checksum(value) != place.checksum else value

    def counterpart(self, stored: Any, new: Any, tokens: Iterable[str]) -> tuple[Path | None, Any]:
        """The path in `new` of what `tokens` name in `stored`, None where a list or its item is gone; and that."""
        path: list[str | int] = []
        for token in tokens:
            if not isinstance(stored, list):
                path.append(token)
            elif isinstance(new, list) and (position := self._position(new, token)) is not None:
                path.append(position)
            else:
                return None, None
            stored, new = self._child(stored, token), self._child(new, token)
        return tuple(path), stored

    def _child(self, parent: Any, token: str) -> Any:
        if isinstance(parent, dict):
            return parent.get(token)
        if isinstance(parent, list) and (position := self._position(parent, token)) is not None:
            return parent[position]
        return None

    def _position(self, items: list[Any], token: str) -> int | None:
        if token.isdecimal() and token.isascii() and len(token) < _CHECKSUM_LENGTH:
            return int(token) if int(token) < len(items) else None
        key, equals, name = token.partition("=")
        if not equals:
            key, name = "", token
        index = self._indices.get((id(items), key))
        if index is None:
            index = self._indices[id(items), key] = dict(_named(items, key))
        return index.get(name)


def _named(items: list[Any], key: str) -> Iterator[tuple[object, int]]:
    """(what stands for it, position) of each item: its checksum where `key` is empty."""
    for position, item in enumerate(items):
        name = _checksum(item) if not key else item.get(key) if isinstance(item, dict) else None
        if isinstance(name, str | int):
            yield str(name), position


def _places(additions: Iterable[Addition], document: Any) -> Iterator[RecordedPlace]:
    for addition in additions:
        path = tuple(_tokens(addition.path, document))
        if not addition.appended:
            yield RecordedPlace(addition.author, pointer(path), _checksum(addition.value))
        else:
            item: Any = addition.value
            token = APPENDED if addition.key is None else f"{addition.key}={item[addition.key]}"
            yield RecordedPlace(addition.author, pointer((*path, token)), _checksum(item))


def _tokens(path: Path, document: Any) -> Iterator[str]:
    for token in path:
        parent, document = document, document[token]
        name = document.get("name") if isinstance(token, int) and isinstance(document, dict) else None
        # The API server refuses two containers of one name later.
        unique = isinstance(name, str) and sum(isinstance(it, dict) and it.get("name") == name for it in parent) == 1
        yield f"name={name}" if unique else str(token)


def _checksum(value: object) -> str:
    return f"{crc32(msgspec.json.encode(value, order='sorted')):0{_CHECKSUM_LENGTH}x}"


def _text(places: Iterable[RecordedPlace], room: int) -> str:
    """The record of as many places as there is room for, in order."""
    grouped: dict[str, list[str]] = {}
    size = len("{}")
    for place in islice(places, MAX_PLACES):
        size += len(msgspec.json.encode(place.text)) + len(",")
        if place.author not in grouped:
            size += len(msgspec.json.encode(place.author)) + len(":[],")
        if size > room:
            break
        grouped.setdefault(place.author, []).append(place.text)
    return msgspec.json.encode(grouped).decode() if grouped else ""


def _room(document: Any) -> int:
    """How long the record may be beside the other annotations: a job is never refused for it."""
    others = {key: value for key, value in (_annotations(document)).items() if key != INJECTED}
    taken = sum(len(key.encode()) + len(value.encode()) for key, value in others.items())
    return min(MAX_BYTES, MAX_ANNOTATIONS - taken - len(INJECTED))


def _annotations(document: Any) -> dict[str, str]:
    return (document.get("metadata") or {}).get("annotations") or {}
