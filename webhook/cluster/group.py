"""Records that belong together, and values computed from them that are kept up to date with every change."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakSet

from webhook.cluster.resource import K, T
from webhook.work_limit import uncounted


class Listener(Protocol):
    """Is called after each change of a record; None stands for no record."""

    def changed(self, old: Any, new: Any) -> None:
        """A record was added, changed or removed. It must not raise."""
        ...


class Derived(Listener, Protocol):
    """A value computed from a group."""

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
        """Store this record under `key`, in place of any other."""
        old = self.get(key)
        self[key] = record
        if self._listeners:
            self._tell(old, record)

    def drop(self, key: K) -> None:
        """Remove the record under `key`; KeyError if there is none."""
        old = self.pop(key)
        if self._listeners:
            self._tell(old, None)

    def derived(self, make: "Callable[[Group[K, T]], D]") -> D:
        """What `make` gives for this group: made once, then updated with each change.

        The time does not count for the job that comes first: the group may be large. It listens before it is stored: a
        decision may end in between, and what is stored must not miss a change.
        """
        if self._derived is None:
            self._derived = {}
        if make not in self._derived:
            made = uncounted(lambda: make(self))
            self.listen(made)
            self._derived[make] = made
        return cast("D", self._derived[make])

    def listen(self, listener: Listener) -> None:
        """Call `listener` after each change, for as long as somebody else holds it."""
        if self._listeners is None:
            self._listeners = WeakSet()
        self._listeners.add(listener)

    def __copy__(self) -> "Group[K, T]":
        """The records as they are now, with what was computed from them."""
        twin = Group(self)
        if self._derived:
            twin._derived = {make: each.copy() for make, each in self._derived.items()}
        return twin

    def _tell(self, old: T | None, new: T | None) -> None:
        for each in self._listeners or ():
            each.changed(old, new)
