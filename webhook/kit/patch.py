"""A JSON patch (RFC 6902) whose operations always apply.

The API server rejects a request if an operation does not apply, even under `failurePolicy: Ignore`. Therefore the
builder applies each operation to its copy of the object when it records the operation.
"""

from collections.abc import Mapping
from functools import lru_cache, reduce
from operator import getitem
from typing import Any, Final

import msgspec

from webhook.kit.limits import MAX_ANNOTATIONS_BYTES

Path = tuple[str | int, ...]
_ANNOTATIONS: Final = ("metadata", "annotations")
_ATOMS: Final = frozenset({str, bool, int})


def template_path(role: str) -> Path:
    return ("spec", "mpiReplicaSpecs", role, "template")


class PatchConflict(ValueError):
    """The object's structure at this path does not allow the operation. `path` is a JSON pointer."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")


class Addition(msgspec.Struct, frozen=True, gc=False):
    """An injected value. Its operation may also create missing parents."""

    author: str  # the id of the injection
    path: Path  # the path of the value, or of the list if an item was appended
    value: object
    appended: bool = False


class PatchBuilder:
    """Records operations on `document`, a decoded JSON object that the builder owns and changes.

    Every operation is an `add` that replaces no value of a user. `author` is the id of the current injection. Each
    operation has an item in `additions`, in the same order, except an operation of `write_own`.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.operations: list[dict[str, object]] = []
        self.additions: list[Addition] = []
        self.author = ""
        self.only_below: frozenset[Path] | None = None
        """The subtrees that additions may change, such as `("spec", "mpiReplicaSpecs", "Worker")`; None if they may
        change all."""

    @property
    def authors(self) -> list[str]:
        """The id of the injection for each addition."""
        return [addition.author for addition in self.additions]

    def get(self, path: Path) -> Any:
        document: Any = self.document
        try:
            return reduce(getitem, path, document)
        except (LookupError, TypeError):
            return None

    def add(self, path: Path, value: object, *, over: object = None) -> bool:
        """Adds `value` and missing parents at `path` unless a value other than null exists; returns whether it was
        added.

        `over` is the default in the CRD's schema. A value equal to `over` is replaced, because the API server wrote it
        for a user who set nothing. An annotation is not added if the annotations would exceed the API server's limit.
        """
        if self.only_below is not None and path[:3] not in self.only_below:
            return False
        parent, name = self.get(path[:-1]), path[-1]
        present = parent.get(name) if type(parent) is dict else None
        if present is not None and (type(present) is not type(over) or present != over):
            return False
        if path[-3:-1] == _ANNOTATIONS and not _has_room(parent, name, value):
            return False
        self._set(parent, path, value)
        self.additions.append(Addition(self.author, path, value))
        return True

    def write_own(self, path: Path, value: object) -> None:
        """Sets or replaces an annotation if the object has room for it. The operation has no author."""
        annotations = self.get(path[:-1])
        if _has_room(annotations, path[-1], value):
            self._set(annotations, path, value)

    def _set(self, parent: Any, path: Path, value: object) -> None:
        """Sets the value, and creates missing parents. `parent` is the value at `path[:-1]`.

        PatchConflict if a parent is not a mapping, or if a list does not exist.
        """
        name = path[-1]
        while parent is None and type(name) is str:
            path, value = path[:-1], {name: value}
            parent, name = self.get(path[:-1]), path[-1]
        if type(parent) is not dict or type(name) is not str:
            raise PatchConflict(pointer(path), "does not fit the object")
        parent[name] = value if type(value) in _ATOMS else _copy(value)
        self._record(path, value)

    def add_entries(self, path: Path, entries: Mapping[str, str]) -> dict[str, str]:
        """Adds the entries whose keys are missing; returns the added entries."""
        return {key: value for key, value in entries.items() if self.add((*path, key), value)}

    def append(
        self, path: Path, item: dict[str, object] | str, *, key: str | None = "name", is_new: bool = False
    ) -> bool:
        """Appends `item` to the list at `path` unless an item has the same `key`; returns whether it was appended.

        Most lists in the MPIJob schema are keyed, and a second item with the same key would make the job invalid. For
        lists without a key (tolerations, lists of text), `key` is None and equal items count as the same. With `is_new`
        the item is appended without a search.
        """
        if self.only_below is not None and path[:3] not in self.only_below:
            return False
        items = self.get(path)
        if items is None:
            self._set(self.get(path[:-1]), path, [item])
        elif not isinstance(items, list):
            raise PatchConflict(pointer(path), "is not a list")
        elif not is_new and _is_in(items, item, key):
            return False
        else:
            items.append(_copy(item))
            self._record((*path, "-"), item)
        self.additions.append(Addition(self.author, path, item, appended=True))
        return True

    def take_back(self, count: int, document: dict[str, Any]) -> None:
        """Removes all but the first `count` operations. `document` is the object after these operations."""
        self.document = document
        del self.operations[count:], self.additions[count:]

    def _record(self, path: Path, value: object) -> None:
        self.operations.append({"op": "add", "path": pointer(path), "value": value})


@lru_cache(maxsize=512)  # injections and policies determine the paths, so there are a few dozen
def pointer(path: Path) -> str:
    """The path as a JSON pointer (RFC 6901)."""
    return "".join([f"/{escaped(token)}" for token in path])


def escaped(token: str | int) -> str:
    return str(token).replace("~", "~0").replace("/", "~1")


def _copy(value: object) -> object:
    """A copy, so that later changes of the document affect neither recorded operations nor the caller's value."""
    return msgspec.to_builtins(value)


def _has_room(annotations: Any, key: str | int, value: object) -> bool:
    existing = annotations if type(annotations) is dict else {}
    if len(f"{existing}{key}{value}") <= MAX_ANNOTATIONS_BYTES // 4:
        return True  # the text above is not shorter than the annotations, and a character has at most four bytes
    result = {**existing, key: value}
    return len("".join(map(str, (*result, *result.values()))).encode(errors="replace")) <= MAX_ANNOTATIONS_BYTES


def _is_in(items: list[Any], item: dict[str, object] | str, key: str | None) -> bool:
    if key is None or isinstance(item, str):
        return item in items
    return item[key] in [existing.get(key) for existing in items if isinstance(existing, dict)]
