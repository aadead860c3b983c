"""Values derived from a group of records are updated with the group."""

import gc
from copy import copy

import pytest

from webhook.cluster.contents import Group


class Total:
    def __init__(self, numbers: "Group[str, int] | None" = None, *, total: int = 0) -> None:
        self.total = sum((numbers or {}).values()) + total

    def changed(self, old: int | None, new: int | None) -> None:
        self.total += (new or 0) - (old or 0)

    def copy(self) -> "Total":
        return Total(total=self.total)


def test_derived_value_is_updated_with_the_records() -> None:
    group = Group({"a": 1})
    group.put("b", 2)
    total = group.derived(Total)
    assert total.total == 3
    group.put("a", 5)
    group.put("c", 1)
    group.drop("b")
    assert (group, total.total) == ({"a": 5, "c": 1}, 6)
    assert group.derived(Total) is total
    with pytest.raises(KeyError):
        group.drop("b")
    assert total.total == 6


def test_copy_does_not_change_with_its_original() -> None:
    group = Group({"a": 1})
    group.derived(Total)
    twin = copy(group)
    group.put("a", 9)
    assert (twin, twin.derived(Total).total) == ({"a": 1}, 1)
    assert group.derived(Total).total == 9
    assert copy(Group({"a": 1})).derived(Total).total == 1


def test_unreferenced_listener_is_dropped() -> None:
    values: list[int | None] = []

    class Remember(Total):
        def changed(self, old: int | None, new: int | None) -> None:
            values.append(new)

    group = Group({"a": 1})
    listener = Remember()
    group.listen(listener)
    group.put("a", 2)
    del listener
    gc.collect()
    group.put("a", 3)
    assert values == [2]
