"""Reads files of Kubernetes objects, as `kubectl apply -f` does."""

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from glob import glob, has_magic
from pathlib import Path
from typing import Any, Final

from webhook.api import yaml
from webhook.api.metadata import SET_BY_SERVER
from webhook.api.mpijob import GROUP
from webhook.api.untyped import without_nulls
from webhook.cli.limits import MAX_FILE_BYTES
from webhook.cli.policy import job_fields

STDIN: Final = "-"
STDIN_TITLE: Final = "standard input"
SUFFIXES: Final = (".json", ".yaml", ".yml")
JOB_SIGNS: Final = ("mpiReplicaSpecs", f"{GROUP}/")
"""Signs of a job whose kind is missing or misspelt."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object in a file."""

    source: str
    document: dict[str, Any]
    """The object without nulls, which the API server drops."""
    number: int = 1
    """The number of the YAML document in the file."""
    written: dict[str, Any] | None = None
    """The object with its nulls; None if `document` is the whole object."""
    place: tuple[str | int, ...] = ()
    """The path of the object in the YAML document, such as `items` and an index."""
    content: bytes = field(default=b"", repr=False, compare=False)
    moved: dict[str, str] = field(default_factory=dict, compare=False)
    """Maps the correct path of each misspelt or misplaced field to its path in the file. Outer fields come first."""

    @property
    def kind(self) -> str:
        return _head(self.document, "kind")

    @property
    def api_version(self) -> str:
        return _head(self.document, "apiVersion")

    @property
    def namespace(self) -> str:
        return _text(self.document.get("metadata"), "namespace")

    @property
    def name(self) -> str:
        return _text(self.document.get("metadata"), "name")

    @property
    def title(self) -> str:
        """The name, or the generateName of an object without a name."""
        return self.name or _text(self.document.get("metadata"), "generateName")

    def created_in(self, namespace: str) -> dict[str, Any]:
        """The object that webhooks get if a client creates the object in `namespace`."""
        created = dict(self.document)
        metadata = created.setdefault("metadata", {})
        if isinstance(metadata, dict):
            settable = {key: value for key, value in metadata.items() if key not in SET_BY_SERVER}
            created["metadata"] = {**settable, "namespace": namespace}
        return created


class ManifestError(ValueError):
    """A file cannot be used. The message names the file."""

    def __init__(self, message: str, file: str = "") -> None:
        super().__init__(message)
        self.file = file


def load(
    arguments: Iterable[str], *, recursive: bool = False, only: Collection[str] = ()
) -> tuple[list[Manifest], list[ManifestError]]:
    """The objects in files, and an error for each file that cannot be used.

    An argument is a file, `-` for standard input, a pattern, or a directory. The items of a list are returned in place
    of the list. `only` skips files that contain none of these words, and documents that are not Kubernetes objects.
    """
    manifests: list[Manifest] = []
    errors: list[ManifestError] = []
    for argument in arguments:
        try:
            sources = files(argument, recursive=recursive)
        except ManifestError as error:
            if not only or not Path(argument).is_dir():
                errors.append(error)
            continue
        for source in sources:
            try:
                manifests.extend(parse(read(source), source, only=only))
            except ManifestError as error:
                errors.append(error)
    return manifests, errors


def read(source: str) -> bytes:
    """The content of a file, or of standard input for `-`."""
    try:
        if source == STDIN:
            content = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(source).open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ManifestError(f"{source}: {_reason(error)}", source) from None
    if len(content) > MAX_FILE_BYTES:
        raise ManifestError(f"{source}: is larger than {MAX_FILE_BYTES // 2**20} MiB", source)
    return content


def objects(source: str, entry: Any) -> list[Manifest]:
    """The object `entry` of the file `source`, or the items of a List object; ManifestError for any other value."""
    return [
        Manifest(source, without_nulls(document), written=document, place=place)
        for place, document in _objects(entry, source)
    ]


def files(argument: str, *, recursive: bool = False) -> list[str]:
    """The file, or the sorted files of a directory or pattern; ManifestError if there are none."""
    try:
        path = Path(argument)
        if argument != STDIN and path.is_dir():
            names, missing = _within(path, recursive=recursive), f"no {', '.join(SUFFIXES)} files in this directory"
        elif argument == STDIN or not has_magic(argument) or path.exists():
            return [argument]
        else:
            matches = glob(argument, recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
            names, missing = [name for name in matches if Path(name).is_file()], "fits no file"
    except (OSError, ValueError) as error:
        where = str(getattr(error, "filename", None) or argument)  # the error may be about a folder inside the argument
        raise ManifestError(f"{where}: {_reason(error)}", where) from None
    if not names:
        raise ManifestError(f"{argument}: {missing}", argument)
    return sorted(names)


def _within(folder: Path, *, recursive: bool) -> list[str]:
    paths = []
    for path in folder.iterdir():
        if recursive and path.name.startswith("."):
            continue
        if path.suffix in SUFFIXES and path.is_file():
            paths.append(str(path))
        elif recursive and path.is_dir() and not path.is_symlink():
            paths += _within(path, recursive=True)
    return paths


def documents(source: str) -> Iterator[tuple[str, Any]]:
    """(name for messages, value) of each document in a file; ManifestError for an empty file.

    If a document is a list, each of its items is a value.
    """
    shown, entries = _documents(source, read(source))
    if not entries:
        raise ManifestError(f"{shown}: is empty", shown)
    for number, entry in enumerate(entries, start=1):
        where = f"{shown}: document {number}" if len(entries) > 1 else shown
        if isinstance(entry, list):
            yield from ((f"{where}[{position}]", item) for position, item in enumerate(entry))
        else:
            yield where, entry


def parse(content: bytes, source: str, *, only: Collection[str] = ()) -> list[Manifest]:
    """The objects in the content of the file `source`. `only` is described in `load`."""
    # Without zero bytes, the search for the words of `only` also works in UTF-16, which Windows writes.
    text = content.translate(None, b"\0-_ ").lower()
    kinds = [kind.lower().encode() for kind in only]
    if only and not any(kind in text for kind in kinds):
        return []
    try:
        shown, documents = _documents(source, content)
    except ManifestError:
        pattern = rb"(?m)kind[\"']?\s*:\s*.{0,99}(%b)|^[\"']?mpireplicaspecs[\"']?:" % b"|".join(kinds)
        if only and not re.search(pattern, text):
            return []  # the broken file mentions the kind, and probably has no such object
        raise
    several = len(documents) > 1
    return [
        Manifest(shown, without_nulls(document), number, document, place, content)
        for number, entry in enumerate(documents, start=1)
        if not only or _head(entry, "kind") or job_signs(entry)
        for place, document in _objects(entry, shown, f": document {number}" if several else "")
    ]


def _documents(source: str, content: bytes) -> tuple[str, list[Any]]:
    shown = STDIN_TITLE if source == STDIN else source
    try:
        return shown, yaml.load_all(content)
    except yaml.YamlError as error:
        raise ManifestError(f"{shown}: {error}", shown) from None


def _head(entry: Any, field: str) -> str:
    """The text of `field` (kind or apiVersion), also under a misspelt key; empty if missing."""
    return _text(entry, head_key(entry, field)) if isinstance(entry, dict) else ""


def head_key(entry: Mapping[str, Any], field: str) -> str:
    """The key of `field` (kind or apiVersion), possibly misspelt; `field` itself if no key is similar."""
    spelt = {re.sub("[-_ ]", "", str(key)).lower(): key for key in entry}
    near = get_close_matches(field.lower(), spelt, n=1, cutoff=0.88)
    return spelt[near[0]] if near and field not in entry else field


def job_signs(entry: Any) -> int:
    """The number of signs of an MPIJob, 0 to 2: the API group, and `spec.mpiReplicaSpecs`."""
    spec = entry.get("spec") if isinstance(entry, dict) else None
    return _head(entry, "apiVersion").startswith(JOB_SIGNS[1]) + (isinstance(spec, dict) and JOB_SIGNS[0] in spec)


def _objects(
    entry: Any, file: str, where: str = "", place: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """(path, object) of `entry`, or of its items if it is a list. Items of an MPIJobList may have no kind."""
    if not isinstance(entry, dict):
        raise ManifestError(f"{file}{where}: is {_KINDS.get(type(entry), 'a number')}, not a Kubernetes object", file)
    if not (kind := _head(entry, "kind")) and not job_signs(entry):
        raise ManifestError(f"{file}{where}: has no kind, so it is not a Kubernetes object", file)
    items = entry.get("items")
    if not kind.endswith("List") or not isinstance(items, list | None):
        yield place, entry
        return
    item_head = {"apiVersion": entry.get("apiVersion"), "kind": kind.removesuffix("List")} if kind != "List" else {}
    for number, item in enumerate(items or []):
        whole = item_head | item if isinstance(item, dict) else item
        yield from _objects(whole, file, f"{where}: items[{number}]", (*place, "items", number))


def _text(mapping: Any, key: str) -> str:
    value = mapping.get(key) if isinstance(mapping, dict) else None
    return value if isinstance(value, str) else ""


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return (reason or type(error).__name__).lower()


_KINDS: Final = {str: "text", list: "a list", bool: "true or false", type(None): "empty"}


def line_of(manifest: Manifest, path: str = "") -> int | None:
    """The line of the field at `path` (1 for the first line), or of the parent of a missing field; None if unknown.

    `path` has the form of the paths in messages.
    """
    if not manifest.content:
        return None
    lines = _lines(manifest.content)[manifest.number - 1]
    place = (*manifest.place, *job_fields.place(manifest.written or manifest.document, _in_file(manifest, path)))
    return nearest_line(lines, place)


def written_at(manifest: Manifest, path: str) -> Any:
    """The value at `path` as its text in the file, such as 3.10, which YAML reads as 3.1; None if it is unknown."""
    if not manifest.content:
        return None
    document = _texts(manifest.content)[manifest.number - 1]
    with suppress(LookupError, TypeError, job_fields.FieldError):
        for step in manifest.place:
            document = document[step]
        return job_fields.get(document, _in_file(manifest, path))
    return None


def _in_file(manifest: Manifest, path: str) -> str:
    """Translate a corrected path into the path in the file."""
    for _ in manifest.moved:
        moved = (place for place in reversed(manifest.moved) if f"{path}.".startswith((f"{place}.", f"{place}[")))
        if new := next(moved, None):
            path = manifest.moved[new] + path.removeprefix(new)
    return path


# One entry is enough: callers finish one file before they start the next.
@lru_cache(maxsize=1)
def _lines(content: bytes) -> Sequence[Mapping[tuple[str | int, ...], int]]:
    return [yaml.lines(part) for part in yaml.split(content)]


def nearest_line(lines: Mapping[tuple[str | int, ...], int], path: tuple[str | int, ...]) -> int | None:
    return next((lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in lines), None)


@lru_cache(maxsize=1)
def _texts(content: bytes) -> Sequence[Any]:
    """Each document that is not empty, with scalars as their text."""
    return [yaml.texts(part) for part in yaml.split(content)]
