"""A JSON patch (RFC 6902) that is correct by construction.

Each operation is applied to the builder's own copy of the object when it is recorded, so the API server applies only
tested operations. A patch that does not apply rejects the request even under `failurePolicy: Ignore`.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

import msgspec

from webhook.kit.limits import MAX_ANNOTATIONS_BYTES

Path = tuple[str | int, ...]
_ANNOTATIONS: Final = ("metadata", "annotations")
_ATOMS: Final = frozenset({str, bool, int})


def template_path(role: str) -> Path:
    """The path of the pod template of `role`."""
    return ("spec", "mpiReplicaSpecs", role, "template")


class PatchConflict(ValueError):
    """The object has another shape at this path than the patch needs; `path` is a JSON pointer."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")


class Addition(msgspec.Struct, frozen=True, gc=False):
    """An injected value as the injection requested it: the operation may have created parents too."""

    author: str  # the injection
    path: Path  # of the value; of the list, if an item was appended
    value: object
    appended: bool = False


class PatchBuilder:
    """Collects operations on `document`, a decoded JSON object that the builder owns and changes.

    Only `add` is ever written, and never over a user's value. `author` names the current injection; `operations` and
    `additions` have the same length and order.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.operations: list[dict[str, object]] = []
        self.additions: list[Addition] = []
        self.author = ""
        self.only_below: frozenset[Path] | None = None
        """The only parts that additions may change, as `("spec", "mpiReplicaSpecs", "Worker")`; None for the whole
        job.
        """

    @property
    def authors(self) -> list[str]:
        """The injection of each operation."""
        return [addition.author for addition in self.additions]

    def get(self, path: Path) -> Any:
        """The current value at `path`, None if there is none."""
        return _at(self.document, path)

    def add(self, path: Path, value: object, *, over: object = None) -> bool:
        """Add `value` at `path` unless something other than null is there; True if it was added.

        Missing parents are created in the same operation. A value equal to `over` is replaced: the default in the CRD's
        schema, which the API server has set earlier if the user wrote nothing. An annotation that exceeds the object's
        limit is not added: the API server would reject the job for it.
        """
        if self._is_out_of_bounds(path) or not self._add(path, value, over):
            return False
        self.additions.append(Addition(self.author, path, value))
        return True

    def write_own(self, path: Path, value: object) -> None:
        """Set an annotation at `path`, replacing any value, if the object has room for it. It has no author."""
        annotations = _at(self.document, path[:-1])
        if _has_room(annotations, path[-1], value) and not self._add(path, value):
            annotations[path[-1]] = value
            self._record(path, value)

    def _add(self, path: Path, value: object, over: object = None) -> bool:
        parent, token = _at(self.document, path[:-1]), path[-1]
        if path[-3:-1] == _ANNOTATIONS and not _has_room(parent, token, value):
            return False
        if type(parent) is not dict or type(token) is not str:
            return self._add_with_parents(path, value)
        child = parent.get(token)
        if child is not None and (type(child) is not type(over) or child != over):
            return False
        parent[token] = value if type(value) in _ATOMS else _copy(value)
        self._record(path, value)
        return True

    def _add_with_parents(self, path: Path, value: object) -> bool:
        """Add with missing parents; PatchConflict names the path of a parent that is not a map."""
        parent: Any = self.document
        for depth, token in enumerate(path):
            if type(parent) is dict and type(token) is str:
                child = parent.get(token)
            else:
                child = _item(parent, token, path[: depth + 1])
            if child is None:
                for missing in reversed(path[depth + 1 :]):
                    if isinstance(missing, int):
                        raise PatchConflict(pointer(path), "the list does not exist")
                    value = {missing: value}
                parent[token] = _copy(value)
                self._record(path[: depth + 1], value)
                return True
            parent = child
        return False

    def add_entries(self, path: Path, entries: Mapping[str, str]) -> dict[str, str]:
        """Add the entries whose keys are missing to the map at `path`; returns those that were added."""
        return {key: value for key, value in entries.items() if self.add((*path, key), value)}

    def append(
        self, path: Path, item: dict[str, object] | str, *, key: str | None = "name", is_new: bool = False
    ) -> bool:
        """Append `item` to the list at `path` unless it has an item with the same `key`; True if it was appended.

        Most of the MPIJob schema's lists are maps by a key: a second item with the same key would reject the whole job.
        `key` is None for lists without one, such as tolerations and lists of text: there an equal item counts. An item
        that `is_new` is appended without a search.
        """
        if self._is_out_of_bounds(path):
            return False
        items = _at(self.document, path)
        if items is None:
            self._add_with_parents(path, [item])
        elif not isinstance(items, list):
            raise PatchConflict(pointer(path), "is not a list")
        elif not is_new and _is_in(items, item, key):
            return False
        else:
            items.append(_copy(item))
            self._record((*path, "-"), item)
        self.additions.append(Addition(self.author, path, item, appended=True))
        return True

    def take_back(self, kept: int, document: dict[str, Any]) -> None:
        """Keep only the first operations, after which the object was `document`."""
        self.document = document
        del self.operations[kept:], self.additions[kept:]

    def _is_out_of_bounds(self, path: Path) -> bool:
        return self.only_below is not None and path[:3] not in self.only_below

    def _record(self, path: Path, value: object) -> None:
        self.operations.append({"op": "add", "path": pointer(path), "value": value})


@lru_cache(maxsize=512)  # a few dozen paths for all jobs: injections and policies choose them, not users
def pointer(path: Path) -> str:
    """The JSON pointer (RFC 6901) of `path`: `~` is escaped before `/`."""
    return "".join([f"/{escaped(token)}" for token in path])


def escaped(token: str | int) -> str:
    """`token` as a part of a JSON pointer."""
    return str(token).replace("~", "~0").replace("/", "~1")


def _at(value: Any, path: Path) -> Any:
    try:
        for token in path:
            value = value[token]
    except (LookupError, TypeError):
        return None
    return value


def _copy(value: object) -> object:
    """A copy: later changes to the document must affect neither the recorded operations nor the caller's value."""
    return msgspec.to_builtins(value)


def _has_room(annotations: Any, key: str | int, value: object) -> bool:
    others = annotations if type(annotations) is dict else {}
    if len(f"{others}{key}{value}") <= MAX_ANNOTATIONS_BYTES // 4:
        return True  # a character takes at most four bytes, and one or more characters in `repr`
    wanted = {**others, key: value}
    return len("".join(map(str, (*wanted, *wanted.values()))).encode(errors="replace")) <= MAX_ANNOTATIONS_BYTES


def _is_in(items: list[Any], item: dict[str, object] | str, key: str | None) -> bool:
    if key is None or isinstance(item, str):
        return item in items
    return item[key] in map(dict.get, [each for each in items if type(each) is dict], repeat(key))


def _item(parent: Any, token: str | int, path: Path) -> Any:
    if isinstance(parent, list) and isinstance(token, int) and token < len(parent):
        return parent[token]
    raise PatchConflict(pointer(path), "does not fit the object")
