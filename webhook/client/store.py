"""The records of one kind of object, in memory. The module `watch` adds the objects."""

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic

import msgspec

from webhook.client import wire
from webhook.client.wire import FaultReason, Metadata, WatchFault
from webhook.cluster.budget import Account, Budget
from webhook.cluster.contents import Contents
from webhook.cluster.resource import K, T
from webhook.cluster.view import ABSENT, UNKNOWN, Answer


def by_name(metadata: Metadata) -> str:
    """The key for cluster-scoped objects, and for watches on one namespace."""
    return sys.intern(metadata.name)


def by_namespace(metadata: Metadata) -> tuple[str, str]:
    """The key (namespace, name)."""
    return sys.intern(metadata.namespace), sys.intern(metadata.name)


@dataclass(frozen=True, slots=True)
class Kind(Generic[K, T]):
    """A collection of objects to watch. See `Resource` for fields that both classes have."""

    name: str
    """The name in logs and metrics."""
    path: str
    """The path of the collection, such as `/apis/batch/v1/namespaces/team/jobs`."""
    key: Callable[[Metadata], K]
    project: Callable[[msgspec.Raw], T | None]
    """Makes a small frozen record from the JSON of an object. Returns None for an object to ignore.

    Any exception makes the object unreadable. A record must not refer to the JSON: the whole page would stay in memory.
    """
    group: Callable[[T], Hashable] | None = None
    budget: Budget[T] | None = None
    metadata_only: bool = False
    label_selector: str = ""
    field_selector: str = ""
    page: int = 250
    """The number of objects per page of a list."""
    stale_after: float = 300
    """The maximum `Watch.age` in seconds. Older records are unknown."""


class Store(Generic[K, T]):
    """The records of a kind. Exceptions of callbacks are logged and ignored."""

    def __init__(self, kind: Kind[K, T], *, log: Any) -> None:
        self.kind = kind
        self._log = log
        self._now: Contents[K, T] = self.contents()
        self._on_change: list[Callable[[K, T | None, T | None], None]] = []
        self._on_list: list[Callable[[], None]] = []

    @property
    def records(self) -> Mapping[K, T]:
        return MappingProxyType(self._now.records)

    @property
    def unreadable(self) -> Set[K]:
        """The keys of unreadable objects, and of objects beyond the budget."""
        return self._now.unreadable

    @property
    def groups(self) -> Mapping[Hashable, Mapping[K, T]]:
        return self._now.groups

    def contents(self) -> Contents[K, T]:
        """New empty contents, for `read` and `replace`."""
        kind = self.kind
        return Contents(kind.group, account=None if kind.budget is None else Account(kind.budget, kind.group))

    def get(self, key: K) -> T | Answer:
        """The record; ABSENT if the object does not exist or is ignored; UNKNOWN if the object is unreadable."""
        record = self._now.records.get(key)
        if record is not None:
            return record
        return UNKNOWN if key in self._now.unreadable else ABSENT

    def on_change(self, callback: Callable[[K, T | None, T | None], None]) -> None:
        """Call `callback` with key, old and new record after each change. A missing record is None."""
        self._on_change.append(callback)

    def on_list(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each complete list, and after the callbacks for its changes."""
        self._on_list.append(callback)

    def read(self, objects: Iterable[msgspec.Raw], contents: Contents[K, T]) -> None:
        """Add `objects` to `contents`; WatchFault if an item is not a Kubernetes object."""
        for data in objects:
            self._take(wire.decode(wire.objects, data).metadata, data, contents)

    def replace(self, contents: Contents[K, T]) -> None:
        old, self._now = self._now.records, contents
        for key in old.keys() - contents.records.keys():
            self._call(self._on_change, key, old[key], None)
        for key, record in contents.records.items():
            if (before := old.get(key)) != record:
                self._call(self._on_change, key, before, record)
        self._call(self._on_list)

    def put(self, metadata: Metadata, data: msgspec.Raw) -> None:
        old = self._now.records.get(self.kind.key(metadata))
        self._changed(self._take(metadata, data, self._now), old)

    def remove(self, metadata: Metadata) -> None:
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
            if record is not None:
                contents.expect_room(key, record)
            contents.unreadable.discard(key)
        except Exception as error:  # noqa: BLE001 - one broken object must not hide the others
            if key not in self._now.unreadable:
                where = {"namespace": metadata.namespace, "name": metadata.name}
                self._log.warning("object skipped", kind=self.kind.name, **where, error=type(error).__name__)
            contents.unreadable.add(key)
            record = None
        if record is None:
            contents.remove(key)
        else:
            contents.put(key, record)
        return key

    def _changed(self, key: K, old: T | None) -> None:
        new = self._now.records.get(key)
        if new != old:
            self._call(self._on_change, key, old, new)

    def _call(self, callbacks: list[Callable[..., None]], *args: object) -> None:
        for callback in callbacks:
            try:
                callback(*args)
            except Exception as error:  # noqa: BLE001 - the next listener and the watch must continue
                self._log.error("listener failed", kind=self.kind.name, error=wire.place(error))
