"""What was asked of a view holds for as long as it would give the same answers."""

from collections.abc import Callable
from typing import Any

import pytest

from webhook.cluster import asked
from webhook.cluster.asked import MOST, AskedView
from webhook.cluster.contents import Contents
from webhook.cluster.resources.local_queues import LOCAL_QUEUES
from webhook.cluster.resources.nodes import NODES
from webhook.cluster.view import ABSENT, UNKNOWN, Answer


class View:
    """Numbers, sorted by whether they are even, which change in place."""

    def __init__(self, *numbers: int) -> None:
        self.contents: Contents[str, int] = Contents(lambda number: number % 2 == 0)
        self.known = True
        for number in numbers:
            self.contents.put(f"n{number}", number)

    def get(self, _: object, key: str) -> int | Answer:
        return self.contents.records.get(key, ABSENT)

    def all(self, _: object) -> Any:
        return self.contents.records if self.known else UNKNOWN

    def within(self, _: object, even: object) -> Any:
        return self.contents.groups.get(even, {})

    def groups(self, _: object) -> Any:
        return self.contents.groups if self.known else UNKNOWN


def view_of(*numbers: int) -> Any:
    return View(*numbers)


def put(view: View) -> None:
    view.contents.put("n1", 3)


def remove(view: View) -> None:
    view.contents.remove("n1")


def add(view: View) -> None:
    view.contents.put("more", 5)


def add_a_group(view: View) -> None:
    view.contents.put("more", 8)


def forget(view: View) -> None:
    view.known = False


def replace(view: View) -> None:
    view.contents = View(3).contents


CHANGES: set[Callable[[View], None]] = {put, remove, add, add_a_group, forget, replace}
ASKED: dict[str, tuple[Callable[[Any], Any], set[Callable[[View], None]]]] = {
    "an object": (lambda view: view.get(NODES, "n1"), {put, remove, replace}),
    "none": (lambda view: view.get(NODES, "more"), {add, add_a_group}),
    "a list": (lambda view: view.all(NODES), CHANGES),
    "a namespace": (lambda view: view.within(LOCAL_QUEUES, False), {put, remove, add, replace}),
    "an empty one": (lambda view: view.within(LOCAL_QUEUES, True), {add_a_group}),
    "groups": (lambda view: view.groups(NODES), CHANGES),
}


@pytest.mark.parametrize("change", sorted(CHANGES, key=str), ids=lambda change: change.__name__)
@pytest.mark.parametrize("asking", ASKED)
def test_another_answer_is_seen(asking: str, change: Callable[[View], None]) -> None:
    ask, changed_by = ASKED[asking]
    view = view_of(1)
    noting = AskedView(view)
    assert ask(noting) == ask(view)
    assert noting.complete
    assert asked.hold(noting.facts, view)
    view.contents.put("n1", 1)  # as when something of an object has changed that nobody reads
    assert asked.hold(noting.facts, view)
    change(view)
    assert asked.hold(noting.facts, view) is (change not in changed_by)


def test_unknown_is_an_answer() -> None:
    view = view_of(1)
    view.known = False
    noting = AskedView(view)
    assert noting.groups(NODES) is noting.all(NODES) is UNKNOWN
    assert asked.hold(noting.facts, view)
    view.known = True
    assert not asked.hold(noting.facts, view)


@pytest.mark.parametrize(("length", "complete"), [(MOST, True), (MOST + 1, False)])
def test_a_long_list_is_not_compared(length: int, complete: bool) -> None:
    view = view_of(*range(length))
    noting = AskedView(view)
    assert len(noting.all(NODES)) == length
    assert noting.complete is complete


def test_nor_are_groups_without_a_version() -> None:
    view = view_of()
    view.all = lambda _: {"a group": {"a": "b"}}
    noting = AskedView(view)
    noting.all(NODES)
    assert not noting.complete
