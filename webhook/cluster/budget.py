"""Memory limits for records whose number and size users control."""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


class Full(ValueError):
    """A record exceeds the budget. Its object is then UNKNOWN, like an unreadable object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Generic[T]):
    """Limits of records in the unit of `size`, by default bytes."""

    size: Callable[[T], int]
    of_one: int
    of_group: int
    """The limit of each group. The group of an object never changes."""
    in_all: int


class Account(Generic[T]):
    """The used part of a budget, in total and by group."""

    def __init__(self, budget: Budget[T], group: Callable[[T], Hashable] | None) -> None:
        self._budget = budget
        self._group = group
        self._in_all = 0
        self._of_group: Counter[Hashable] = Counter()

    def expect_room(self, old: T | None, new: T) -> None:
        """Full if `new` in place of `old` exceeds the budget."""
        budget, size = self._budget, self._budget.size(new)
        more = size - (0 if old is None else budget.size(old))
        of_group = 0 if self._group is None else self._of_group[self._group(new)] + more
        if size > budget.of_one or of_group > budget.of_group or self._in_all + more > budget.in_all:
            raise Full

    def change(self, old: T | None, new: T | None) -> None:
        """Record that `new` replaces `old`; None means no record."""
        for record, sign in ((old, -1), (new, 1)):
            if record is not None:
                size = sign * self._budget.size(record)
                self._in_all += size
                if self._group is not None:
                    self._add(self._group(record), size)

    def _add(self, group: Hashable, size: int) -> None:
        self._of_group[group] += size
        if not self._of_group[group]:
            del self._of_group[group]
