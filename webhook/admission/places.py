"""Where in a job something was injected: a place that is found again when lists have been put in another order.

A place is a JSON pointer and a checksum of the value. `Launcher:` and `Worker:` stand for their pod templates, the item
of a list is named by its key, `name=mpi`, by its position, or by nothing but the checksum, `-`, and the network in an
annotation of Multus by itself.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, cast
from zlib import crc32

import msgspec

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.networks import NETWORKS, Network, NetworksError, parse
from webhook.kit.patch import Addition, Path, escaped, pointer, template_path

APPENDED: Final = "-"
_CHECKSUM_LENGTH: Final = 8
_SHORT: Final = 64
# Anyone may write a record. What is in the places of a real one is part of the stored job and of the new one, each of
# 1.5 MiB at most; what is beyond this many bytes counts as gone.
_MOST_READ: Final = 4 * 1024 * 1024
_OF_ITEM: Final = 128  # to look at an item of a list takes about as long as to read so many bytes
# Far beyond any pod: each network takes a device or an address.
_MOST_COMMAS: Final = 256
_LONGEST_NETWORKS: Final = 16 * 1024
_TEMPLATES: Final = tuple((role, f"{pointer(template_path(role))}/") for role in (LAUNCHER, WORKER))


class RecordedPlace(msgspec.Struct, frozen=True, gc=False):
    """Where something was injected, and the checksum of what."""

    author: str
    where: str
    """A JSON pointer as it stands in the record, with `Launcher:` or `Worker:` for the pod template."""
    checksum: str

    @property
    def text(self) -> str:
        """As it stands in the record."""
        return f"{self.where} {self.checksum}"

    @property
    def pointer(self) -> str:
        """The whole pointer."""
        role, _, rest = self.where.partition(":")
        return self.where if role.startswith("/") else f"{pointer(template_path(role))}{rest}"

    @property
    def tokens(self) -> list[str]:
        """The parts of the pointer."""
        return [token.replace("~1", "/").replace("~0", "~") for token in self.pointer.split("/")[1:]]


def shortened(whole: str) -> str:
    """A pointer, with the role in place of all that leads to a pod template."""
    for role, template in _TEMPLATES:
        if whole.startswith(template):
            return f"{role}:{whole[len(template) - 1 :]}"
    return whole


def networks(text: str) -> list[Network]:
    """The networks that an annotation lists; NetworksError where it cannot be read, or is longer than any of a pod."""
    if len(text) > _LONGEST_NETWORKS or text.count(",") > _MOST_COMMAS:
        raise NetworksError("is too long")
    return parse(text)


class Lists:
    """Finds items of lists by what stands for them in a place; each list is indexed once."""

    def __init__(self) -> None:
        self._indices: dict[tuple[int, str], dict[object, int]] = {}
        self._room = _MOST_READ

    def value(self, document: Any, place: RecordedPlace) -> Any:
        """What `place` names in `document`, None where that is not there, or not as it was injected."""
        *above, last = place.tokens
        value = self.at(document, [*above, place.checksum if last == APPENDED else last])
        return None if value is None or self._checksum(value) != place.checksum else value

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
                index = {str(network): position for position, network in enumerate(networks(text))}
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
            self._room -= _OF_ITEM * len(items)
            index = self._indices[id(items), key] = dict(self._named(items, key)) if self._room >= 0 else {}
        return index.get(name)

    def _named(self, items: list[Any], key: str) -> Iterator[tuple[object, int]]:
        """(what stands for it, position) of each item: its checksum where `key` is empty."""
        for position, item in enumerate(items):
            name = self._checksum(item) if not key else item.get(key) if isinstance(item, dict) else None
            if isinstance(name, str | int):
                yield str(name), position

    def _checksum(self, value: object) -> str | None:
        """None once there is no room for more."""
        if self._room < 0:
            return None
        encoded = _encoder.encode(value)
        self._room -= len(encoded)
        return _of_bytes(encoded)


def of(additions: Iterable[Addition], document: Any) -> Iterator[RecordedPlace]:
    """Where in `document` these additions stand."""
    named: dict[Path, str] = {}
    for addition in additions:
        path, value = addition.path, cast("Any", addition.value)
        short = type(value) is bool or (type(value) is str and len(value) <= _SHORT)
        if short and not (addition.appended or addition.entries):
            place = _of_short(addition.author, path, value)
            if place is not None:
                yield place
                continue
        where = _without_positions(path) or named.get(path)
        if where is None:
            where = named[path] = _by_names(path, document)
        if addition.entries:
            for entry in addition.entries:
                yield RecordedPlace(addition.author, f"{where}/{escaped(entry)}", checksum(entry))
        elif not addition.appended:
            yield RecordedPlace(addition.author, where, checksum(value))
        else:
            token = APPENDED if addition.key is None else escaped(f"{addition.key}={value[addition.key]}")
            yield RecordedPlace(addition.author, f"{where}/{token}", checksum(value))


@lru_cache(maxsize=512)  # as `pointer`
def _without_positions(path: Path) -> str | None:
    """Where a path leads that goes through no item of a list, None for any other."""
    return None if int in map(type, path) else shortened(pointer(path))


@lru_cache(maxsize=512, typed=True)  # what policies and injections say, so the same for all jobs
def _of_short(author: str, path: Path, value: str | bool) -> RecordedPlace | None:
    """The place of a text or a yes or no, None where it is in an item of a list."""
    where = _without_positions(path)
    return None if where is None else RecordedPlace(author, where, checksum(value))


def _by_names(path: Path, document: Any) -> str:
    """Where a path leads, with names for the positions of items that have one of their own."""
    first = [*map(type, path)].index(int)
    where = [_without_positions(path[:first]) or ""]
    for token in path[:first]:
        document = document[token]
    for token in path[first:]:
        parent, document = document, document[token]
        shown = token
        if isinstance(token, int):
            names = [item.get("name") if isinstance(item, dict) else None for item in parent]
            # The API server refuses two containers of one name later.
            if isinstance(name := names[token], str) and names.count(name) == 1:
                shown = f"name={name}"
        where.append(escaped(shown))
    return "/".join(where)


_encoder = msgspec.json.Encoder(order="sorted")


def checksum(value: object) -> str:
    """What tells an unchanged value from a changed one."""
    return _of_bytes(_encoder.encode(value))


def _of_bytes(encoded: bytes) -> str:
    return f"{crc32(encoded):08x}"
