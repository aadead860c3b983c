"""Memory limits for records whose number and size users control."""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


class Full(ValueError):
    """A record exceeds the budget. A query for its object returns UNKNOWN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Generic[T]):
    """Limits on the sizes that `size` returns. The group of an object must never change."""

    size: Callable[[T], int]
    per_record: int
    per_group: int
    total: int


class Account(Generic[T]):
    """The used part of a budget."""

    def __init__(self, budget: Budget[T], group: Callable[[T], Hashable] | None) -> None:
        self._budget = budget
        self._group = group
        self._total = 0
        self._per_group: Counter[Hashable] = Counter()

    def expect_room(self, old: T | None, new: T) -> None:
        """Raise Full if the budget is exceeded when `new` replaces `old`."""
        budget, size = self._budget, self._budget.size(new)
        growth = size - (0 if old is None else budget.size(old))
        group_size = 0 if self._group is None else self._per_group[self._group(new)] + growth
        if size > budget.per_record or group_size > budget.per_group or self._total + growth > budget.total:
            raise Full

    def change(self, old: T | None, new: T | None) -> None:
        """Record that `new` replaces `old`; None means no record."""
        for record, sign in ((old, -1), (new, 1)):
            if record is not None:
                size = sign * self._budget.size(record)
                self._total += size
                if self._group is not None:
                    self._add(self._group(record), size)

    def _add(self, group: Hashable, size: int) -> None:
        self._per_group[group] += size
        if not self._per_group[group]:
            del self._per_group[group]
