"""How large the pages of a watch's lists are, and in which portions they are decoded."""

import asyncio
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from msgspec import Raw

from tests.support.watch_api import page, stream, thing, until
from tests.support.watching import THINGS, World
from webhook.client import connection
from webhook.client.limits import MAX_BYTES_AT_STRETCH, MAX_OBJECTS_AT_STRETCH
from webhook.client.paging import slices
from webhook.client.store import Kind, by_name
from webhook.client.watch import LEAST_PAGE
from webhook.client.wire import FaultReason, Page, PageMetadata, WatchFault
from webhook.server.background import at_work


async def test_a_page_that_is_too_large_is_asked_for_again_with_fewer_objects(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_PAGE_BYTES", 10_000)
    large = {name: thing(name, data="x" * 6_000) for name in "abcd"}
    world.api.lists = [
        page(*large.values()),
        page(large["a"], token="t1"),
        page(large["b"], large["c"], token="t2"),
        page(large["b"], token="t3"),
        page(thing("e")),
    ]
    watch = world.watch(replace(THINGS, page=16))
    world.start(watch)
    await world.until(lambda: watch.synced)
    asked = [(query["limit"], query.get("continue")) for query in world.api.queries(watch=False)]
    assert asked == [("16", None), ("4", None), ("4", "t1"), ("1", "t1"), ("1", "t3")]
    assert set(watch.store.records) == set("abe")
    assert (watch.restarts, world.time.sleeps) == ({}, [])


class Lists:
    """In place of a connection: faults of lists, in turn, then a page for each list; a watch is refused."""

    def __init__(self, *faults: FaultReason | None) -> None:
        self.faults = list(faults)
        self.limits: list[int] = []

    async def renew(self) -> None:
        pass

    async def list_page(self, target: str, *, metadata_only: bool = False) -> Page[Raw]:
        self.limits.append(int(dict(parse_qsl(urlsplit(target).query))["limit"]))
        if self.faults and (reason := self.faults.pop(0)):
            raise WatchFault(reason)
        return Page(PageMetadata("7"), [])

    def watch(self, *_: object, **__: object) -> Any:
        raise WatchFault(FaultReason.EXPIRED)


async def limits(world: World, page: int, *faults: FaultReason | None) -> list[int]:
    """The limits of the first ten lists."""
    lists = Lists(*faults)
    watch = world.watch(replace(THINGS, page=page), lists)
    async with at_work(watch.run):
        await until(lambda: len(lists.limits) >= 10)
    return lists.limits[:10]


async def test_after_pages_that_do_not_come_they_are_smaller_but_not_for_good(world: World) -> None:
    """After an outage each list had one object per page, until a restart."""
    assert LEAST_PAGE == 16
    stalled = [FaultReason.STALLED] * 5
    assert await limits(world, 250, *stalled) == [250, 62, 16, 16, 16, 16, 32, 64, 128, 250]
    assert await limits(world, 8, *stalled) == [8] * 10, "where the usual is less, it is not more"


async def test_a_list_that_takes_longer_than_its_token_gets_larger_pages(world: World) -> None:
    """It would never come to its end."""
    stalled, expired = [FaultReason.STALLED] * 3, [FaultReason.EXPIRED] * 2
    assert (await limits(world, 250, *stalled, *expired))[:7] == [250, 62, 16, 16, 32, 64, 128]


@pytest.mark.parametrize("reason", sorted({*FaultReason} - {FaultReason.STALLED, FaultReason.TOO_LARGE}))
async def test_no_other_fault_makes_pages_smaller(world: World, reason: FaultReason) -> None:
    assert await limits(world, 250, *[reason] * 3) == [250] * 10


async def test_a_page_that_does_not_come_is_one_that_stalls(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_PAGE_SECONDS", 0.5)
    world.api.lists = [stream(), stream(), page(thing("a"))]
    watch = world.watch(replace(THINGS, page=128))
    world.start(watch)
    await world.until(lambda: watch.synced)
    assert [query["limit"] for query in world.api.queries(watch=False)] == ["128", "32", "16"]
    assert watch.restarts == {FaultReason.STALLED: 2}


async def test_others_go_on_while_a_large_page_is_decoded(world: World) -> None:
    world.api.lists = [page(*(thing(f"thing-{number}") for number in range(500)))]
    turns = 0

    async def others() -> None:
        nonlocal turns
        while not watch.synced:
            turns += bool(decoded)
            await asyncio.sleep(0)

    decoded: list[object] = []

    def count(data: Any) -> None:
        decoded.append(data)

    watch = world.watch(Kind("things", THINGS.path, key=by_name, project=count))
    world.start(watch)
    await others()
    assert len(decoded) == 500
    assert turns >= 500 // MAX_OBJECTS_AT_STRETCH


def test_a_slice_has_few_objects_and_few_bytes() -> None:
    small, large = Raw(b"{}"), Raw(b" " * MAX_BYTES_AT_STRETCH)
    items = [small] * (MAX_OBJECTS_AT_STRETCH + 1) + [large, large, small]
    assert [len(some) for some in slices(items)] == [MAX_OBJECTS_AT_STRETCH, 2, 1, 1]
    assert [item for some in slices(items) for item in some] == items
    assert list(slices([])) == []
