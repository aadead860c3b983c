"""A watch without faults: its requests, records and listeners."""

import asyncio
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from aiohttp import web
from msgspec import Raw

from tests.support.watch_api import bookmark, event, page, refused, stream, thing, until
from tests.support.watching import THINGS, Thing, World
from webhook.client import connection
from webhook.client.limits import MAX_BYTES_AT_STRETCH, MAX_OBJECTS_AT_STRETCH
from webhook.client.paging import slices
from webhook.client.store import Kind, by_name
from webhook.client.watch import LEAST_PAGE, RELIST_AFTER, WATCH_SECONDS
from webhook.client.wire import FaultReason, Page, PageMetadata, WatchFault
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.server.background import at_work


async def test_watch_starts_at_the_version_of_the_first_page(world: World) -> None:
    world.api.lists = [
        page(thing("a"), thing("b"), version="7", token="t/1="),
        page(thing("c"), version="9"),
    ]
    watch = world.watch()
    world.start(watch)
    await world.until(lambda: len(world.api.requests) == 3)
    assert world.api.queries(watch=False) == [{"limit": "2"}, {"limit": "2", "continue": "t/1="}]
    assert world.api.queries(watch=True) == [
        {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "300", "resourceVersion": "7"}
    ]
    assert {request.path for request in world.api.requests} == {"/apis/example.com/v1/things"}
    assert world.api.requests[0].headers["Accept"] == "application/json"
    assert watch.store.records == {name: Thing(name, 0) for name in "abc"}
    assert (len(watch.store.records), watch.requests, watch.synced, watch.reason) == (3, 3, True, "")


async def test_selectors_are_sent_with_lists_and_watches(world: World) -> None:
    selectors = {"label_selector": "a=b,c in (d, e+f)", "field_selector": "metadata.name=x"}
    world.start(world.watch(replace(THINGS, **selectors)))
    await world.until(lambda: len(world.api.requests) == 2)
    for query in (request.query for request in world.api.requests):
        assert query["labelSelector"] == "a=b,c in (d, e+f)"
        assert query["fieldSelector"] == "metadata.name=x"


async def test_events_change_the_records(world: World) -> None:
    world.api.lists = [page(thing("a", size=1), thing("b", size=1), thing("c", size=1))]
    world.api.watches = [
        stream(
            event("MODIFIED", "a", 8, size=2),
            event("DELETED", "b", 9, size=1),
            event("ADDED", "d", 10, size=4),
            event("MODIFIED", "c", 11, hidden=True),
            bookmark(12),
        )
    ]
    watch = world.watch()
    changes: list[tuple[str, int | None, int | None]] = []
    lists: list[int] = []
    watch.store.on_change(lambda key, old, new: changes.append((key, old and old.size, new and new.size)))
    watch.store.on_list(lambda: lists.append(len(watch.store.records)))
    world.start(watch)
    await world.until(lambda: watch.events == 4)
    assert [watch.get(name) for name in "abcd"] == [Thing("a", 2), ABSENT, ABSENT, Thing("d", 4)]
    assert changes == [
        *[(name, None, 1) for name in "abc"],
        ("a", 1, 2),
        ("b", 1, None),
        ("d", None, 4),
        ("c", 1, None),
    ]
    assert lists == [3]


async def test_second_list_reports_only_differences(world: World) -> None:
    world.api.lists = [
        page(thing("a", size=1), thing("b", size=1), thing("c", size=1)),
        page(thing("a", size=1), thing("b", size=2), thing("d", size=1)),
    ]
    world.api.watches = [refused(410), stream()]
    watch = world.watch()
    changes: list[tuple[str, int | None, int | None]] = []
    watch.store.on_change(lambda key, old, new: changes.append((key, old and old.size, new and new.size)))
    world.start(watch)
    await world.until(lambda: len(world.api.requests) == 4)
    assert sorted(changes[3:]) == [("b", 1, 2), ("c", 1, None), ("d", None, 1)]


async def test_watch_that_ends_regularly_is_resumed_from_the_last_version(world: World) -> None:
    watch = world.watch()
    passing = world.passing(watch, 250)
    world.api.watches = [
        stream(event("ADDED", "a", 8), bookmark(40), then="end", meanwhile=passing),
        stream(bookmark(41), then="end", meanwhile=passing),
        stream(),
    ]
    world.start(watch)
    await world.until(lambda: len(world.api.requests) == 4)
    assert [query["resourceVersion"] for query in world.api.queries(watch=True)] == ["7", "40", "41"]
    assert world.time.sleeps == []
    assert watch.restarts == {FaultReason.ENDED: 2}
    assert watch.reason == ""


async def test_length_of_a_watch_is_random(world: World) -> None:
    ranges = []

    def uniform(low: float, high: float) -> float:
        ranges.append((low, high))
        return 251.7

    world.uniform = uniform
    world.start(world.watch())
    await world.until(lambda: len(world.api.requests) == 2)
    assert ranges == [WATCH_SECONDS]
    assert world.api.queries(watch=True)[0]["timeoutSeconds"] == "252"


async def test_records_are_unknown_before_the_first_list_is_complete(world: World) -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def late(request: web.BaseRequest) -> web.StreamResponse:
        entered.set()
        await go.wait()
        return await page(thing("b"))(request)

    world.api.lists = [page(thing("a"), token="2"), late]
    watch = world.watch()
    settled = asyncio.create_task(watch.settled())
    world.start(watch)
    await entered.wait()
    assert (watch.get("a"), watch.synced, watch.known, settled.done()) == (UNKNOWN, False, False, False)
    go.set()
    await settled
    assert (watch.get("a"), watch.get("x")) == (Thing("a", 0), ABSENT)


async def test_records_become_unknown_when_they_are_too_old(world: World) -> None:
    requested, more = asyncio.Event(), asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        requested.set()
        await more.wait()
        return await stream(bookmark(8))(request)

    world.api.lists = [page(thing("a"))]
    world.api.watches = [handler]
    watch = world.watch()
    assert watch.age == float("inf")
    world.start(watch)
    await requested.wait()
    assert watch.age == 0
    world.time.now += 300
    assert (watch.age, watch.get("a"), watch.stale) == (300, Thing("a", 0), True)
    world.time.now += 1
    assert (watch.age, watch.get("a"), watch.get("x"), watch.synced) == (301, UNKNOWN, UNKNOWN, True)
    assert watch.store.get("a") == Thing("a", 0)
    more.set()
    await world.until(lambda: watch.age == 0)
    assert watch.get("a") == Thing("a", 0)


async def test_open_watch_without_events_keeps_the_records_up_to_date(world: World) -> None:
    watch = world.watch()
    world.api.lists = [page(thing("a"))]
    world.api.watches = [stream(then="end", meanwhile=world.passing(watch, 301)), stream()]
    world.start(watch)
    await world.until(lambda: watch.restarts[FaultReason.ENDED] and watch._opened < float("inf"))
    assert (watch.age, watch.get("a")) == (0, Thing("a", 0))


async def test_list_follows_watches_without_events(world: World) -> None:
    watch = world.watch()
    world.api.watches = [stream(then="end", meanwhile=world.passing(watch, RELIST_AFTER / 2))]
    world.start(watch)
    await world.until(lambda: len(world.api.queries(watch=False)) == 3)
    assert world.time.sleeps == []
    # Twice: a list, then watches at 0 s, 300 s and 600 s. After the third list, a further watch may have started.
    assert ["watch" in request.query for request in world.api.requests][:9] == [False, True, True, True] * 2 + [False]


async def test_only_the_unreadable_object_is_unknown(world: World) -> None:
    world.api.lists = [page(thing("a", size="many"), thing("b", size=2))]
    world.api.watches = [
        stream(
            event("MODIFIED", "a", 8, size="more"),
            event("MODIFIED", "b", 9, size=[]),
            event("ADDED", "c", 10, size={}),
            event("MODIFIED", "a", 11, size=5),
            event("DELETED", "c", 12, size={}),
            event("MODIFIED", "b", 13, hidden=True),
        )
    ]
    watch = world.watch()
    changes: list[object] = []
    watch.store.on_change(lambda key, *_: changes.append((key, watch.get("a"), watch.get("b"), watch.get("c"))))
    world.start(watch)
    await world.until(lambda: watch.events == 6)
    two, five = Thing("b", 2), Thing("a", 5)
    assert changes == [("b", UNKNOWN, two, ABSENT), ("b", UNKNOWN, UNKNOWN, ABSENT), ("a", five, UNKNOWN, UNKNOWN)]
    assert [watch.get(name) for name in "abc"] == [five, ABSENT, ABSENT]
    assert watch.reason == ""
    skipped = [(fields["name"], fields["error"]) for fields in world.log.events("object skipped")]
    assert skipped == [("a", "ValidationError"), ("b", "ValidationError"), ("c", "ValidationError")]


async def test_a_listener_that_raises_stops_neither_the_watch_nor_the_next_listener(world: World) -> None:
    world.api.lists = [page(thing("a"))]
    world.api.watches = [stream(event("ADDED", "b", 8))]
    watch = world.watch()
    calls: list[str] = []

    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    watch.store.on_change(broken)
    watch.store.on_change(lambda key, *_: calls.append(key))
    watch.store.on_list(broken)
    watch.store.on_list(lambda: calls.append("list"))
    world.start(watch)
    await world.until(lambda: watch.events == 1)
    assert calls == ["a", "list", "b"]
    errors = [fields["error"] for fields in world.log.events("listener failed")]
    assert len(errors) == 3
    assert all(error.startswith("RuntimeError at ") and "secret" not in error for error in errors)


async def test_second_run_resumes_from_the_last_version(world: World) -> None:
    world.api.watches = [stream(bookmark(20)), stream()]
    watch = world.watch()
    first = world.start(watch)
    await world.until(lambda: watch.age == 0 and len(world.api.requests) == 2)
    await asyncio.sleep(0.02)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    world.tasks.clear()
    world.start(watch)
    await world.until(lambda: len(world.api.requests) == 3)
    assert world.api.queries(watch=True)[-1]["resourceVersion"] == "20"


async def test_too_large_page_is_requested_again_with_fewer_objects(
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
    requested = [(query["limit"], query.get("continue")) for query in world.api.queries(watch=False)]
    assert requested == [("16", None), ("4", None), ("4", "t1"), ("1", "t1"), ("1", "t3")]
    assert set(watch.store.records) == set("abe")
    assert (watch.restarts, world.time.sleeps) == ({}, [])


class Lists:
    """A connection whose list requests raise these faults in order, and then return one page. Watches fail."""

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
    """Return the parameter `limit` of the first ten list requests."""
    lists = Lists(*faults)
    watch = world.watch(replace(THINGS, page=page), lists)
    async with at_work(watch.run):
        await until(lambda: len(lists.limits) >= 10)
    return lists.limits[:10]


async def test_pages_get_smaller_after_timeouts_and_larger_after_success(world: World) -> None:
    """If pages stayed small, lists after an outage would need too many requests until the service restarts."""
    assert LEAST_PAGE == 16
    stalled = [FaultReason.STALLED] * 5
    assert await limits(world, 250, *stalled) == [250, 62, 16, 16, 16, 16, 32, 64, 128, 250]
    assert await limits(world, 8, *stalled) == [8] * 10, "a smaller default page size is not increased"


async def test_pages_get_larger_after_an_expired_token(world: World) -> None:
    """With small pages, the token would expire again and again, and the list would never be complete."""
    stalled, expired = [FaultReason.STALLED] * 3, [FaultReason.EXPIRED] * 2
    assert (await limits(world, 250, *stalled, *expired))[:7] == [250, 62, 16, 16, 32, 64, 128]


@pytest.mark.parametrize("reason", sorted({*FaultReason} - {FaultReason.STALLED, FaultReason.TOO_LARGE}))
async def test_faults_other_than_timeouts_and_size_do_not_make_pages_smaller(world: World, reason: FaultReason) -> None:
    assert await limits(world, 250, *[reason] * 3) == [250] * 10


async def test_page_that_times_out_has_the_fault_reason_stalled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_PAGE_SECONDS", 0.5)
    world.api.lists = [stream(), stream(), page(thing("a"))]
    watch = world.watch(replace(THINGS, page=128))
    world.start(watch)
    await world.until(lambda: watch.synced)
    assert [query["limit"] for query in world.api.queries(watch=False)] == ["128", "32", "16"]
    assert watch.restarts == {FaultReason.STALLED: 2}


async def test_other_tasks_run_while_a_large_page_is_decoded(world: World) -> None:
    world.api.lists = [page(*(thing(f"thing-{number}") for number in range(500)))]
    turns = 0

    async def other_task() -> None:
        nonlocal turns
        while not watch.synced:
            turns += bool(decoded)
            await asyncio.sleep(0)

    decoded: list[object] = []

    def count(data: Any) -> None:
        decoded.append(data)

    watch = world.watch(Kind("things", THINGS.path, key=by_name, project=count))
    world.start(watch)
    await other_task()
    assert len(decoded) == 500
    assert turns >= 500 // MAX_OBJECTS_AT_STRETCH


def test_slices_are_limited_in_objects_and_bytes() -> None:
    small, large = Raw(b"{}"), Raw(b" " * MAX_BYTES_AT_STRETCH)
    items = [small] * (MAX_OBJECTS_AT_STRETCH + 1) + [large, large, small]
    assert [len(some) for some in slices(items)] == [MAX_OBJECTS_AT_STRETCH, 2, 1, 1]
    assert [item for some in slices(items) for item in some] == items
    assert list(slices([])) == []
