"""Stores the records of one kind of object, by key and by group."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast
from weakref import WeakSet

from webhook.cluster.budget import Account
from webhook.cluster.resource import K, T
from webhook.work_limit import uncounted


class Listener(Protocol):
    """Receives the changes of a group."""

    def changed(self, old: Any, new: Any) -> None:
        """The record `new` has replaced `old`; None means no record. This method must not raise."""
        ...


class Derived(Listener, Protocol):
    """A value that is computed from a group."""

    def copy(self) -> Any:
        """Return an independent value, for a copy of the group."""
        ...


D = TypeVar("D", bound=Derived)


class Group(dict[K, T]):
    """The records of a group by key; only `put` and `drop` change them."""

    __slots__ = ("_derived", "_listeners")

    def __init__(self, records: Mapping[K, T] | None = None) -> None:
        super().__init__(records or {})
        self._derived: dict[object, Derived] | None = None
        self._listeners: WeakSet[Listener] | None = None

    def put(self, key: K, record: T) -> None:
        old = self.get(key)
        self[key] = record
        self._notify(old, record)

    def drop(self, key: K) -> None:
        self._notify(self.pop(key), None)

    def derived(self, make: "Callable[[Group[K, T]], D]") -> D:
        """The value of `make` for this group. The value is computed once, then updated with each change.

        The computation may be long, and the current review's time limit does not include it.
        """
        if self._derived is None:
            self._derived = {}
        if make not in self._derived:
            value = uncounted(lambda: make(self))
            # In this order, a stored value misses no change even if the review is aborted after the first step.
            self.listen(value)
            self._derived[make] = value
        return cast("D", self._derived[make])

    def listen(self, listener: Listener) -> None:
        """Call `listener` after each change, as long as other references to `listener` exist."""
        if self._listeners is None:
            self._listeners = WeakSet()
        self._listeners.add(listener)

    def __copy__(self) -> "Group[K, T]":
        twin = Group(self)
        if self._derived:
            twin._derived = {make: value.copy() for make, value in self._derived.items()}
        return twin

    def _notify(self, old: T | None, new: T | None) -> None:
        for listener in self._listeners or ():
            listener.changed(old, new)


R = TypeVar("R")


class Groups(dict[Hashable, Group[K, T]]):
    """The groups of records, by name."""

    __slots__ = ("of_names",)

    def __init__(self) -> None:
        super().__init__()
        self.of_names: dict[object, object] = {}
        """The cached results of functions of the names. Adding or removing a group clears the cache."""

    def __setitem__(self, name: Hashable, group: Group[K, T]) -> None:
        self.of_names.clear()
        super().__setitem__(name, group)

    def __delitem__(self, name: Hashable) -> None:
        self.of_names.clear()
        super().__delitem__(name)


def of_names(groups: Mapping[Hashable, Any], make: Callable[[Iterable[Any]], R]) -> R:
    """The value of `make` for the names of the groups, cached if `groups` is a `Groups`.

    `make` must be defined at module level, because it is the key of the cache.
    """
    if not isinstance(groups, Groups):
        return make(groups.keys())
    if make not in groups.of_names:
        groups.of_names[make] = uncounted(lambda: make(groups.keys()))
    return cast("R", groups.of_names[make])


@dataclass(slots=True)
class Contents(Generic[K, T]):
    """The records, and the keys of unreadable objects."""

    group: Callable[[T], Hashable] | None = None
    records: dict[K, T] = field(default_factory=dict)
    groups: Groups[K, T] = field(default_factory=Groups)
    unreadable: set[K] = field(default_factory=set)
    account: Account[T] | None = None
    """The memory in use; None without a budget."""

    def expect_room(self, key: K, record: T) -> None:
        """Raise Full if the budget has no room for this record."""
        if self.account is not None:
            self.account.expect_room(self.records.get(key), record)

    def put(self, key: K, record: T) -> None:
        old = self.records.get(key)
        self.records[key] = record
        if self.account is not None:
            self.account.change(old, record)
        if self.group is None:
            return
        name = self.group(record)
        if old is not None and (before := self.group(old)) != name:
            self._leave(before, key)
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = Group()
        group.put(key, record)

    def remove(self, key: K) -> T | None:
        """Remove the record and return it; None if there is none."""
        record = self.records.pop(key, None)
        if self.account is not None:
            self.account.change(record, None)
        if record is not None and self.group is not None:
            self._leave(self.group(record), key)
        return record

    def _leave(self, name: Hashable, key: K) -> None:
        group = self.groups[name]
        group.drop(key)
        if not group:
            del self.groups[name]
