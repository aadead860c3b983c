"""Records of one resource: by key, and by group."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from webhook.cluster.budget import Account
from webhook.cluster.group import Group
from webhook.cluster.resource import K, T
from webhook.work_limit import uncounted

R = TypeVar("R")


class Groups(dict[Hashable, Group[K, T]]):
    """Groups by name, and what was worked out of their names, which is kept until a group comes or goes."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[object, object] = {}

    def __setitem__(self, name: Hashable, group: Group[K, T]) -> None:
        self._known.clear()
        super().__setitem__(name, group)

    def __delitem__(self, name: Hashable) -> None:
        self._known.clear()
        super().__delitem__(name)

    def of_names(self, make: Callable[[Iterable[Any]], R]) -> R:
        """What `make`, a function of some module, gives for the names."""
        if make not in self._known:
            self._known[make] = uncounted(lambda: make(self.keys()))
        return cast("R", self._known[make])


def of_names(groups: Mapping[Hashable, Any], make: Callable[[Iterable[Any]], R]) -> R:
    """What `make` gives for the names of the groups: worked out once where they are known to be the same."""
    return groups.of_names(make) if isinstance(groups, Groups) else make(groups.keys())


@dataclass(slots=True)
class Contents(Generic[K, T]):
    """Records by key, the same sorted by group, and the keys of the objects of which none could be made."""

    group: Callable[[T], Hashable] | None = None
    records: dict[K, T] = field(default_factory=dict)
    groups: Groups[K, T] = field(default_factory=Groups)
    unreadable: set[K] = field(default_factory=set)
    account: Account[T] | None = None
    """Of what the records take, where there is a budget for them."""

    def expect_room(self, key: K, record: T) -> None:
        """Full where there is no room for this record under `key`."""
        if self.account is not None:
            self.account.expect_room(self.records.get(key), record)

    def put(self, key: K, record: T) -> None:
        """Store this record under `key`, in place of any other."""
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
        """Remove the record under `key` and return it, if there was one."""
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
