"""Records of one resource: by key, and by group."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic

from webhook.cluster.group import Group
from webhook.cluster.resource import K, T


@dataclass(slots=True)
class Contents(Generic[K, T]):
    """Records by key, the same sorted by group, and the keys of the objects of which none could be made."""

    group: Callable[[T], Hashable] | None = None
    records: dict[K, T] = field(default_factory=dict)
    groups: dict[Hashable, Group[K, T]] = field(default_factory=dict)
    unreadable: set[K] = field(default_factory=set)

    def put(self, key: K, record: T) -> None:
        """Store this record under `key`, in place of any other."""
        old = self.records.get(key)
        self.records[key] = record
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
        if record is not None and self.group is not None:
            self._leave(self.group(record), key)
        return record

    def _leave(self, name: Hashable, key: K) -> None:
        group = self.groups[name]
        group.drop(key)
        if not group:
            del self.groups[name]
