"""Where in a job something was injected: a place that is found again when lists have been put in another order.

A place is a JSON pointer and a checksum of the value. `Launcher:` and `Worker:` stand for their pod templates, the item
of a list is named by its key, `name=mpi`, by its position, or by nothing but the checksum, `-`, and the network in an
annotation of Multus by itself.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final
from zlib import crc32

import msgspec

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.networks import NETWORKS, NetworksError, parse
from webhook.kit.patch import Addition, Path, pointer, template_path

APPENDED: Final = "-"
_CHECKSUM_LENGTH: Final = 8
_TEMPLATES: Final = tuple((role, f"{pointer(template_path(role))}/") for role in (LAUNCHER, WORKER))


class RecordedPlace(msgspec.Struct, frozen=True):
    """Where something was injected, and the checksum of what."""

    author: str
    pointer: str
    checksum: str

    @property
    def text(self) -> str:
        """As it stands in the record."""
        for role, template in _TEMPLATES:
            if self.pointer.startswith(template):
                return f"{role}:{self.pointer[len(template) - 1 :]} {self.checksum}"
        return f"{self.pointer} {self.checksum}"

    @property
    def tokens(self) -> list[str]:
        """The parts of the pointer."""
        return [token.replace("~1", "/").replace("~0", "~") for token in self.pointer.split("/")[1:]]


class Lists:
    """Finds items of lists by what stands for them in a place; each list is indexed once."""

    def __init__(self) -> None:
        self._indices: dict[tuple[int, str], dict[object, int]] = {}

    def value(self, document: Any, place: RecordedPlace) -> Any:
        """What `place` names in `document`, None where that is not there, or not as it was injected."""
        *above, last = place.tokens
        value = self.at(document, [*above, place.checksum if last == APPENDED else last])
        return None if value is None or checksum(value) != place.checksum else value

    def at(self, document: Any, tokens: Iterable[str]) -> Any:
        """What `tokens` name in `document`, None where that is not there."""
        for token in tokens:
            document = self._child(document, token)
        return document

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

    def path(self, document: Any, place: RecordedPlace) -> Path | None:
        """Where in `document` the value of `place` stands as it was injected; None where it does not."""
        if self.value(document, place) is None:
            return None
        *above, last = place.tokens
        path, parent = self.counterpart(document, document, above)
        if path is None or not isinstance(parent, list):
            return None if path is None else (*path, last)
        position = self._position(parent, place.checksum if last == APPENDED else last)
        return None if position is None else (*path, position)

    def _child(self, parent: Any, token: str) -> Any:
        if isinstance(parent, dict):
            return parent.get(token)
        if isinstance(parent, str):
            return token if token in self._networks(parent) else None
        if isinstance(parent, list) and (position := self._position(parent, token)) is not None:
            return parent[position]
        return None

    def _networks(self, text: str) -> dict[object, int]:
        """The networks that an annotation lists; none where it cannot be read."""
        index = self._indices.get((id(text), NETWORKS))
        if index is None:
            try:
                index = {str(network): position for position, network in enumerate(parse(text))}
            except NetworksError:
                index = {}
            self._indices[id(text), NETWORKS] = index
        return index

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
        name = checksum(item) if not key else item.get(key) if isinstance(item, dict) else None
        if isinstance(name, str | int):
            yield str(name), position


def of(additions: Iterable[Addition], document: Any) -> Iterator[RecordedPlace]:
    """Where in `document` these additions stand."""
    for addition in additions:
        path = _tokens(addition.path, document)
        if addition.entries:
            for entry in addition.entries:
                yield RecordedPlace(addition.author, pointer((*path, entry)), checksum(entry))
        elif not addition.appended:
            yield RecordedPlace(addition.author, pointer(path), checksum(addition.value))
        else:
            item: Any = addition.value
            token = APPENDED if addition.key is None else f"{addition.key}={item[addition.key]}"
            yield RecordedPlace(addition.author, pointer((*path, token)), checksum(item))


def _tokens(path: Path, document: Any) -> Path:
    """The path with names for the positions of items that have one of their own."""
    if int not in map(type, path):
        return path
    named = path
    for depth, token in enumerate(path):
        parent, document = document, document[token]
        name = document.get("name") if isinstance(token, int) and isinstance(document, dict) else None
        # The API server refuses two containers of one name later.
        if isinstance(name, str) and sum(isinstance(it, dict) and it.get("name") == name for it in parent) == 1:
            named = (*named[:depth], f"name={name}", *named[depth + 1 :])
    return named


def checksum(value: object) -> str:
    """What tells an unchanged value from a changed one."""
    return f"{crc32(msgspec.json.encode(value, order='sorted')):0{_CHECKSUM_LENGTH}x}"
