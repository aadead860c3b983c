"""The records of one kind of object in memory. No I/O: `watch` brings the objects."""

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic

import msgspec

from webhook.client import wire
from webhook.client.wire import FaultReason, Metadata, WatchFault
from webhook.cluster.contents import Contents
from webhook.cluster.resource import K, T
from webhook.cluster.view import ABSENT, UNKNOWN, Answer


def by_name(metadata: Metadata) -> str:
    """The key of an object of the whole cluster, or in a watch on one namespace."""
    return sys.intern(metadata.name)


def by_namespace(metadata: Metadata) -> tuple[str, str]:
    """The key of an object in any namespace: (namespace, name)."""
    return sys.intern(metadata.namespace), sys.intern(metadata.name)


@dataclass(frozen=True, slots=True)
class Kind(Generic[K, T]):
    """What to watch and what to keep of it.

    `name` stands in logs and metrics; `path` is the collection, as in `/apis/batch/v1/namespaces/team/jobs`.
    `project` makes a small frozen record of one object's JSON, or None for an object that does not count; any exception
    of it makes the object unreadable. The record must not refer to that JSON, which is a part of a whole page of them.
    `group` sorts records. With `metadata_only` the API server leaves out all but the metadata.
    `page` objects are listed at a time.
    Without contact for `stale_after` seconds nothing is known any more.
    """

    name: str
    path: str
    key: Callable[[Metadata], K]
    project: Callable[[msgspec.Raw], T | None]
    group: Callable[[T], Hashable] | None = None
    metadata_only: bool = False
    label_selector: str = ""
    field_selector: str = ""
    page: int = 250
    stale_after: float = 300


class Store(Generic[K, T]):
    """The records of a kind. `skipped` counts how often an object was unreadable.

    Listeners are told when the store has changed; what they raise is logged and goes no further.
    """

    def __init__(self, kind: Kind[K, T], *, log: Any) -> None:
        self.kind = kind
        self.skipped = 0
        self._log = log
        self._now: Contents[K, T] = self.contents()
        self._on_change: list[Callable[[K, T | None, T | None], None]] = []
        self._on_list: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._now.records)

    @property
    def records(self) -> Mapping[K, T]:
        """All records, read-only."""
        return MappingProxyType(self._now.records)

    @property
    def unreadable(self) -> Set[K]:
        """The keys of the objects of which no record could be made."""
        return self._now.unreadable

    @property
    def groups(self) -> Mapping[Hashable, Mapping[K, T]]:
        """All records by group, read-only."""
        return MappingProxyType(self._now.groups)

    def contents(self) -> Contents[K, T]:
        """Nothing yet, to be filled by `read` and then put in place by `replace`."""
        return Contents(self.kind.group)

    def get(self, key: K) -> T | Answer:
        """The record; ABSENT for an object that does not exist or count, UNKNOWN for one that is unreadable."""
        record = self._now.records.get(key)
        if record is not None:
            return record
        return UNKNOWN if key in self._now.unreadable else ABSENT

    def on_change(self, callback: Callable[[K, T | None, T | None], None]) -> None:
        """Call back with key, old and new record after each change, None where there is none."""
        self._on_change.append(callback)

    def on_list(self, callback: Callable[[], None]) -> None:
        """Call back after each complete list, when its changes have been told."""
        self._on_list.append(callback)

    def read(self, objects: Iterable[msgspec.Raw], contents: Contents[K, T]) -> None:
        """Add `objects` to `contents`; WatchFault for what is no object."""
        for data in objects:
            metadata = wire.decode(wire.objects, data).metadata
            self._take(metadata, data, contents)

    def replace(self, contents: Contents[K, T]) -> None:
        """Nothing but `contents` exists."""
        old, self._now = self._now.records, contents
        for key in old.keys() - contents.records.keys():
            self._tell(self._on_change, key, old[key], None)
        for key, record in contents.records.items():
            if (before := old.get(key)) != record:
                self._tell(self._on_change, key, before, record)
        self._tell(self._on_list)

    def put(self, metadata: Metadata, data: msgspec.Raw) -> None:
        """An object is there, new or changed."""
        old = self._now.records.get(self.kind.key(metadata))
        self._changed(self._take(metadata, data, self._now), old)

    def remove(self, metadata: Metadata) -> None:
        """An object is gone."""
        key = self.kind.key(metadata)
        self._now.unreadable.discard(key)
        self._changed(key, self._now.remove(key))

    def _take(self, metadata: Metadata, data: msgspec.Raw, contents: Contents[K, T]) -> K:
        if not metadata.name:
            raise WatchFault(FaultReason.GARBAGE, "an object without name")
        key = self.kind.key(metadata)
        record = None
        try:
            record = self.kind.project(data)
            contents.unreadable.discard(key)
        except Exception as error:  # noqa: BLE001 - whatever a user has written, the other objects count
            self.skipped += 1
            if key not in self._now.unreadable:
                where = {"namespace": metadata.namespace, "name": metadata.name}
                self._log.warning("object skipped", kind=self.kind.name, **where, error=type(error).__name__)
            contents.unreadable.add(key)
        if record is None:
            contents.remove(key)
        else:
            contents.put(key, record)
        return key

    def _changed(self, key: K, old: T | None) -> None:
        new = self._now.records.get(key)
        if new != old:
            self._tell(self._on_change, key, old, new)

    def _tell(self, callbacks: list[Callable[..., None]], *args: object) -> None:
        for callback in callbacks:
            try:
                callback(*args)
            except Exception as error:  # noqa: BLE001 - the next listener, and the watch, must go on
                self._log.error("listener failed", kind=self.kind.name, error=wire.place(error))
