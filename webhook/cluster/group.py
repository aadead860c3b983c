"""Records that belong together, and what is worked out of them, kept up to date as they come and go."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakSet

from webhook.cluster.resource import K, T


class Listener(Protocol):
    """Is told of each change of a record, once it is made; None stands for no record."""

    def changed(self, old: Any, new: Any) -> None:
        """A record is another one, new, or gone. It must not raise."""
        ...


class Derived(Listener, Protocol):
    """What is worked out of a group."""

    def copy(self) -> Any:
        """The same for a copy of the group."""
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
        """There is this record under `key`, and no other."""
        old = self.get(key)
        self[key] = record
        if self._listeners:
            self._tell(old, record)

    def drop(self, key: K) -> None:
        """There is no record under `key` any more; KeyError if there was none."""
        old = self.pop(key)
        if self._listeners:
            self._tell(old, None)

    def derived(self, make: "Callable[[Group[K, T]], D]") -> D:
        """What `make` gives for this group, made once, then told of each change."""
        if self._derived is None:
            self._derived = {}
        if make not in self._derived:
            found = self._derived[make] = make(self)
            self.listen(found)
        return cast("D", self._derived[make])

    def listen(self, listener: Listener) -> None:
        """Tell `listener` of each change for as long as somebody else holds it."""
        if self._listeners is None:
            self._listeners = WeakSet()
        self._listeners.add(listener)

    def __copy__(self) -> "Group[K, T]":
        """The records as they are now, with what was worked out of them."""
        twin = Group(self)
        if self._derived:
            twin._derived = {make: each.copy() for make, each in self._derived.items()}
        return twin

    def _tell(self, old: T | None, new: T | None) -> None:
        for each in self._listeners or ():
            each.changed(old, new)
