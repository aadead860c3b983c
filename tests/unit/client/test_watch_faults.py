"""Whatever an API server, or something in its place, does: the records stay, the requests stay few, and it recovers."""

from typing import Any

import pytest

from tests.support.watch_api import (
    answer,
    bookmark,
    client,
    error,
    event,
    page,
    refused,
    serving,
    stream,
    thing,
)
from tests.support.watching import THINGS, Thing, World
from webhook.client import connection
from webhook.client.connection import Connection
from webhook.client.store import Kind
from webhook.client.watch import BELIEVED, DENIED_DELAY
from webhook.client.wire import FaultReason
from webhook.cluster.view import ABSENT

HTML = "<html>Bad gateway</html>"
# In ten minutes: six quick attempts, then one in 15 to 30 s. A fault in a watch may cost a list with each attempt.
SLOWEST, FASTEST = 24, 44


@pytest.mark.parametrize("luck", [0.0, 1.0], ids=["shortest waits", "longest waits"])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (refused(500, "no"), FaultReason.SERVER_ERROR),
        (answer(HTML, status=502, content_type="text/html"), FaultReason.SERVER_ERROR),
        (answer("", status=503), FaultReason.SERVER_ERROR),
        (refused(401), FaultReason.UNAUTHORIZED),
        (refused(403, "no"), FaultReason.FORBIDDEN),
        (answer("404 page not found", status=404, content_type="text/plain"), FaultReason.NOT_FOUND),
        (refused(410, "too old"), FaultReason.EXPIRED),
        (refused(400, "bad selector"), FaultReason.REJECTED),
        (answer(status=204), FaultReason.REJECTED),
        (refused(429, "slow down"), FaultReason.THROTTLED),
        (answer(""), FaultReason.GARBAGE),
        (answer("\x00\xff{\n"), FaultReason.GARBAGE),
        (answer(b'{"metadata": {"continue": "\xff"}, "type": "\xff"}\n'), FaultReason.GARBAGE),
        (answer('{"metadata": {}, "type": "", "more": ' + "[" * 100_000 + "\n"), FaultReason.GARBAGE),
        (answer("null\n"), FaultReason.GARBAGE),
        (answer("{}\n"), FaultReason.GARBAGE),
        (answer(HTML, content_type="text/html"), FaultReason.GARBAGE),
        (stream(b'{"meta', then="abort"), FaultReason.CUT),
        (stream(then="abort"), FaultReason.CUT),
    ],
    ids=lambda value: str(value) if isinstance(value, FaultReason) else "",
)
@pytest.mark.parametrize("only", ["watch", "list and watch"])
async def test_no_fault_becomes_a_storm(world: World, fault: Any, reason: FaultReason, only: str, luck: float) -> None:
    world.uniform = lambda low, high: low + luck * (high - low)
    world.api.watches = [fault]
    if only != "watch":
        world.api.lists = [fault]
    watch = world.watch()
    await world.spend(watch, 600)
    attempts = len(world.time.sleeps)
    if reason is FaultReason.FORBIDDEN and only != "watch":
        # Each is a line in somebody's audit log, and nobody gives a right by chance.
        assert attempts <= BELIEVED + 1 + 600 / (DENIED_DELAY / 2)
    else:
        assert SLOWEST <= attempts <= FASTEST
    assert len(world.api.requests) <= 2 * attempts
    assert watch.restarts == {reason: attempts}
    assert watch.reason.startswith(reason)
    assert watch.requests == len(world.api.requests)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([error(410, "too old")], FaultReason.EXPIRED),
        ([error(500, "etcd")], FaultReason.SERVER_ERROR),
        ([{"type": "ERROR", "object": {}}], FaultReason.SERVER_ERROR),
        ([{"type": "ERROR", "object": []}], FaultReason.SERVER_ERROR),
        ([b"{\n"], FaultReason.GARBAGE),
        ([b"\n"], FaultReason.GARBAGE),
        ([b'{"type": "ADDED"}\n'], FaultReason.GARBAGE),
        ([{"type": "ADDED", "object": {}}], FaultReason.GARBAGE),
        ([{"type": "ADDED", "object": {"metadata": {"resourceVersion": "8"}}}], FaultReason.GARBAGE),
        ([{"type": "ADDED", "object": {"metadata": {"name": "a"}}}], FaultReason.GARBAGE),
        ([{"type": "BOOKMARK", "object": {"metadata": {}}}], FaultReason.GARBAGE),
        ([event("RENAMED", "a", 8)], FaultReason.GARBAGE),
        ([b'{"type": "ADDED", "object": {"metadata'], FaultReason.CUT),
    ],
)
async def test_no_fault_in_an_open_watch_becomes_a_storm(world: World, lines: list[Any], reason: FaultReason) -> None:
    world.api.watches = [stream(*lines, then="end")]
    watch = world.watch()
    await world.spend(watch, 600)
    assert len(world.time.sleeps) <= FASTEST
    assert len(world.api.requests) <= 2 * FASTEST
    assert set(watch.restarts) == {reason}
    assert watch.synced


async def test_a_server_that_is_gone_is_not_besieged(world: World, unused_tcp_port: int) -> None:
    async with client(f"http://127.0.0.1:{unused_tcp_port}") as gone:
        watch = world.watch(connection=Connection(gone))
        await world.spend(watch, 600)
    assert SLOWEST <= watch.requests <= FASTEST
    assert watch.restarts == {FaultReason.UNREACHABLE: watch.requests}
    assert watch.reason.startswith("unreachable: ")
    assert not watch.synced


async def test_watches_that_end_too_soon_are_slowed_down_even_with_events(world: World) -> None:
    world.api.watches = [stream(bookmark(8), then="end")]
    watch = world.watch()
    await world.spend(watch, 600)
    assert len(world.api.requests) <= FASTEST
    assert len(world.api.queries(watch=False)) == 1
    assert set(watch.restarts) == {FaultReason.ENDED}
    assert watch.reason == ""
    assert world.log.lines == []


async def test_a_list_that_never_ends_is_given_up(world: World) -> None:
    world.api.lists = [page(thing("a"), token="again")]
    watch = world.watch()
    await world.spend(watch, 600)
    assert len(world.api.requests) <= 2 * FASTEST
    assert set(watch.restarts) == {FaultReason.GARBAGE}
    assert len(watch.store.records) == 0


@pytest.mark.parametrize("listing", [page(version=""), page({"metadata": {"resourceVersion": "1"}})])
async def test_a_list_that_cannot_be_used_is_none(world: World, listing: Any) -> None:
    world.api.lists = [listing]
    watch = world.watch()
    await world.spend(watch, 60)
    assert set(watch.restarts) == {FaultReason.GARBAGE}
    assert not watch.synced


async def test_items_may_be_null(world: World) -> None:
    world.api.lists = [answer('{"metadata": {"resourceVersion": "1"}, "items": null}')]
    watch = world.watch()
    world.start(watch)
    await world.until(lambda: watch.synced)
    assert watch.get("a") is ABSENT


@pytest.mark.parametrize(("limit", "watches"), [("MAX_LINE_BYTES", True), ("MAX_PAGE_BYTES", False)])
async def test_what_has_no_bounds_is_cut_off(
    world: World, monkeypatch: pytest.MonkeyPatch, limit: str, watches: bool
) -> None:
    monkeypatch.setattr(connection, limit, 100_000)
    endless = stream(b"x" * 300_000)
    if watches:
        world.api.watches = [endless]
    else:
        world.api.lists = [endless]
    watch = world.watch()
    await world.spend(watch, 60)
    assert set(watch.restarts) == {FaultReason.GARBAGE if watches else FaultReason.TOO_LARGE}


async def test_a_line_may_be_as_large_as_an_object_can_be(world: World) -> None:
    world.api.watches = [stream(event("ADDED", "a", 8, data="\u0001" * 2**20))]
    watch = world.watch()
    world.start(watch)
    await world.until(lambda: watch.events == 1)
    assert watch.get("a") == Thing("a", 0)


async def test_our_own_faults_do_not_end_it_either(world: World) -> None:
    def broken(_: object) -> str:
        raise LookupError("secret")

    watch = world.watch(Kind("things", THINGS.path, key=broken, project=THINGS.project))
    world.api.lists = [page(thing("a"))]
    await world.spend(watch, 600)
    assert len(world.api.requests) <= FASTEST
    assert set(watch.restarts) == {FaultReason.INTERNAL}
    assert watch.reason.startswith("internal: LookupError at ")
    assert not any("secret" in str(line) for line in world.log.lines)


async def test_credentials_that_cannot_be_renewed_are_asked_for_again() -> None:
    async def renew() -> None:
        raise FileNotFoundError("/secret/token")

    async with serving(renew=renew) as (api, link):
        world = World(api, link)
        api.lists = [refused(401)]
        watch = world.watch()
        await world.spend(watch, 600)
    assert len(world.api.requests) <= FASTEST
    assert set(watch.restarts) == {FaultReason.UNAUTHORIZED, FaultReason.INTERNAL}
    assert not any("secret" in str(line) for line in world.log.lines)
