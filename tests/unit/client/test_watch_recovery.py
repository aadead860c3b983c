"""Faults of watches: the pauses and list requests after a fault, and the records in the meantime."""

import asyncio
from typing import Any

import pytest

from tests.support.watch_api import answer, bookmark, client, error, event, page, refused, stream, thing
from tests.support.watching import THINGS, Thing, World, watching
from webhook.client import connection
from webhook.client.connection import Connection
from webhook.client.store import Kind
from webhook.client.watch import BELIEVED, DENIED_DELAY
from webhook.client.wire import FaultReason
from webhook.cluster.view import ABSENT, UNKNOWN


async def test_pauses_double_up_to_30_seconds_and_are_short_again_after_a_steady_watch(world: World) -> None:
    watch = world.watch()
    world.api.watches = [
        *[refused(500)] * 7,
        stream(bookmark(8), then="abort", meanwhile=world.passing(watch, 60)),
        refused(500),
        stream(bookmark(9), then="abort", meanwhile=world.passing(watch, 59)),
        refused(500),
    ]
    await world.spend(watch, 300)
    assert world.time.sleeps[:11] == [1, 2, 4, 8, 16, 30, 30, 1, 2, 4, 8]


EXPIRED = pytest.mark.parametrize(
    "gone", [refused(410, "too old"), stream(error(410, "too old"))], ids=["410 as HTTP status", "410 in an event"]
)


@EXPIRED
async def test_old_records_are_used_until_a_new_list_is_complete_if_the_version_has_expired(
    world: World, gone: Any
) -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def late(request: Any) -> Any:
        entered.set()
        await go.wait()
        return await page(thing("c"), version="30")(request)

    world.api.lists = [page(thing("a")), page(thing("b"), version="30", token="2"), late]
    world.api.watches = [gone, stream()]
    watch = world.watch()
    world.start(watch)
    await entered.wait()
    assert [watch.get(name) for name in "abc"] == [Thing("a", 0), ABSENT, ABSENT]
    go.set()
    await world.until(lambda: len(world.api.queries(watch=True)) == 2)
    assert [watch.get(name) for name in "abc"] == [ABSENT, Thing("b", 0), Thing("c", 0)]
    assert world.api.queries(watch=True)[-1]["resourceVersion"] == "30"
    assert watch.restarts == {FaultReason.EXPIRED: 1}
    assert watch.reason == ""


@EXPIRED
async def test_list_follows_an_expired_version_without_a_pause(world: World, gone: Any) -> None:
    """A pause of up to 30 s would mean that jobs are judged by records from before the outage."""
    world.api.lists = [page(thing("a")), refused(500), page(thing("b")), page(thing("c"))]
    world.api.watches = [*[refused(503)] * 4, gone, *[gone] * 2, stream()]
    world.start(world.watch())
    await world.until(lambda: len(world.api.queries(watch=True)) == 8)
    # A pause after each of four failures, no pause before the next list, a pause after this list fails, and a pause
    # after each list whose version has expired again.
    assert world.time.sleeps == [1, 2, 4, 8, 30, 30, 30]
    watches = "".join("W" if "watch" in request.query else "L" for request in world.api.requests)
    assert watches == "LWWWWW" + "LLW" + "LW" * 2


FAILING = {
    "incomplete lists": (stream(error(410)), [page(thing("b"), token="2"), refused(500)]),
    "watches that start with an error": (stream(error(500)), []),
    "watches that start with invalid JSON": (stream(b"{\n"), []),
    "watches that are cut immediately": (stream(then="abort"), []),
}


@pytest.mark.parametrize(("watches", "lists"), FAILING.values(), ids=FAILING)
async def test_failed_answer_does_not_reset_the_age_of_the_records(world: World, watches: Any, lists: Any) -> None:
    """Otherwise the alert on the records' age would never fire."""
    world.api.lists = [page(thing("a")), *lists * 50]
    world.api.watches = [watches]
    watch = world.watch()
    await world.spend(watch, 200)
    assert watch.synced
    assert watch.age >= 200
    assert watch.stale


async def test_failed_list_keeps_records_and_unreadable_objects(world: World) -> None:
    world.api.lists = [
        page(thing("a"), thing("b", size="x")),
        page(thing("c"), thing("b"), token="2"),
        refused(500),
    ]
    world.api.watches = [refused(410)]
    watch = world.watch()
    await world.spend(watch, 10)
    assert len(world.api.queries(watch=False)) >= 3
    assert watch.store.records == {"a": Thing("a", 0)}
    assert (watch.get("b"), watch.get("c")) == (UNKNOWN, ABSENT)


@pytest.mark.parametrize(
    "fault",
    [
        refused(500),
        stream(bookmark(8), error(500)),
        stream(bookmark(8), then="abort"),
        stream(bookmark(8), b"{\n"),
        stream(bookmark(8), b'{"type": ', then="end"),
    ],
)
async def test_watch_resumes_from_the_last_event_after_a_fault(world: World, fault: Any) -> None:
    world.api.watches = [fault, stream(event("ADDED", "a", 9))]
    watch = world.watch()
    world.start(watch)
    await world.until(lambda: watch.events == 1)
    assert len(world.api.queries(watch=False)) == 1
    assert world.api.queries(watch=True)[1]["resourceVersion"] in {"7", "8"}
    assert watch.get("a") == Thing("a", 0)
    assert watch.reason == ""


async def test_credentials_are_renewed_once_for_each_401() -> None:
    renewed = []

    async def renew() -> None:
        renewed.append(len(world.api.requests))

    async with watching(renew=renew) as world:
        world.api.lists = [refused(401), page(thing("a"))]
        world.api.watches = [refused(401), refused(500), stream(event("ADDED", "b", 8))]
        watch = world.watch()
        world.start(watch)
        await world.until(lambda: watch.events == 1)
    assert renewed == [1, 3]
    assert watch.get("a") == Thing("a", 0)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (refused(403, 'User "x"\ncannot list'), 'forbidden: User "x" cannot list'),
        (answer("404 page not found\n", status=404, content_type="text/plain"), "not-found: HTTP 404"),
    ],
)
async def test_denied_kind_is_unknown_until_it_is_allowed(world: World, fault: Any, reason: str) -> None:
    world.api.lists = [*[fault] * 3, page(thing("a"))]
    watch = world.watch()
    states: list[object] = []
    world.before_sleeps(watch, lambda: states.append((watch.synced, watch.get("a"), watch.reason)))
    settled = asyncio.create_task(watch.settled())
    world.start(watch)
    await settled
    assert (watch.synced, watch.not_installed) == (False, "not-found" in reason)
    await world.until(lambda: len(world.api.queries(watch=True)) == 1)
    assert states == [(False, UNKNOWN, reason)] * 3
    assert world.time.sleeps == [1, 2, 4]
    assert (watch.synced, watch.reason, watch.get("a")) == (True, "", Thing("a", 0))
    level = "debug" if "not-found" in reason else "warning"
    assert [line for line in world.log.lines if line[1] == "watch failed"] == [
        (level, "watch failed", {"kind": "things", "reason": reason})
    ]
    assert not watch.not_installed
    assert len(world.log.events("watch recovered")) == 1


async def test_uninstalled_kind_is_logged_as_a_warning(world: World) -> None:
    world.api.lists = [page(thing("a")), refused(404, "gone")]
    world.api.watches = [refused(404, "gone")]
    watch = world.watch()
    await world.spend(watch, 15)
    assert watch.not_installed
    assert world.log.lines[0] == ("warning", "watch failed", {"kind": "things", "reason": "not-found: gone"})


async def test_kind_becomes_unknown_when_rights_are_removed(world: World) -> None:
    world.api.lists = [page(thing("a")), refused(403, "gone")]
    world.api.watches = [refused(403, "gone")]
    watch = world.watch()
    answers: list[object] = []
    world.before_sleeps(watch, lambda: answers.append(watch.get("a")))
    await world.spend(watch, 15)
    a = Thing("a", 0)
    assert answers == [a, a, UNKNOWN, UNKNOWN]
    assert (watch.synced, watch.reason) == (False, "forbidden: gone")
    assert len(world.api.queries(watch=True)) == 1  # after the denial, each attempt starts with a list


@pytest.mark.parametrize("status", [403, 404])
async def test_denial_by_a_starting_server_is_retried(world: World, status: int) -> None:
    watch = world.watch()
    denial, listing = refused(status), page(thing("a"))
    world.api.lists = [listing, denial, listing, denial, listing]
    world.api.watches = [denial, denial, stream()]
    synced: list[object] = []
    watch.store.on_list(lambda: synced.append("list"))
    world.before_sleeps(watch, lambda: synced.append(watch.synced))
    world.start(watch)
    await world.until(lambda: len(world.api.queries(watch=True)) == 3)
    assert synced == ["list", True, True, "list", True, True, "list"]


@pytest.mark.parametrize(
    ("fault", "least"),
    [
        (refused(429, "busy", **{"Retry-After": "17"}), 17),
        (refused(503, "starting", **{"Retry-After": "17"}), 17),
        (refused(429, "busy", **{"Retry-After": "999999"}), 0),
        (refused(429, "busy", **{"Retry-After": "-3"}), 0),
        (refused(429, "busy", **{"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), 0),
        (refused(429, "busy", **{"Retry-After": "90000"}), 300),
        (stream(error(500, "late", details={"retryAfterSeconds": 17})), 17),
        (stream(error(429, "busy", details={"retryAfterSeconds": "x"})), 0),
    ],
)
async def test_pause_requested_by_the_server_is_respected(world: World, fault: Any, least: float) -> None:
    world.uniform = lambda low, _: low
    world.api.watches = [fault]
    watch = world.watch()
    await world.spend(watch, max(least, 0.1))
    assert world.time.sleeps[0] == (least or 0.5)


@pytest.mark.parametrize("before", [[], [event("ADDED", "a", 9)], [b'{"type": "ADD']])
async def test_stalled_watch_is_closed_and_resumed(before: list[Any]) -> None:
    async with watching(inactivity=0.1) as world:
        world.api.watches = [stream(*before), stream(event("ADDED", "b", 10))]
        watch = world.watch()
        world.start(watch)
        await world.until(lambda: watch.get("b") == Thing("b", 0))
        assert len(world.api.queries(watch=False)) == 1
    assert watch.restarts[FaultReason.STALLED] >= 1
    assert world.time.sleeps[0] == 1


async def test_quiet_watch_is_resumed_without_a_fault() -> None:
    async with watching(inactivity=0.1) as world:
        watch = world.watch()
        world.api.watches = [stream(meanwhile=world.passing(watch, 90)), stream(event("ADDED", "b", 10))]
        world.start(watch)
        await world.until(lambda: watch.events)
        assert len(world.api.queries(watch=False)) == 1
    assert world.time.sleeps == []
    assert world.log.lines == []


async def test_fault_is_logged_when_it_starts_and_when_it_changes(world: World) -> None:
    world.api.lists = [refused(500, "a"), refused(500, "a"), refused(500, "b"), page(thing("a"))]
    watch = world.watch()
    world.start(watch)
    await world.until(lambda: watch.synced)
    assert world.log.lines == [
        ("warning", "watch failed", {"kind": "things", "reason": "server-error: a"}),
        ("warning", "watch failed", {"kind": "things", "reason": "server-error: b"}),
        ("info", "watch recovered", {"kind": "things"}),
    ]


HTML = "<html>Bad gateway</html>"
# Attempts in ten minutes: six quick ones, then one every 15 to 30 s.
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
async def test_faults_do_not_flood_the_server(
    world: World, fault: Any, reason: FaultReason, only: str, luck: float
) -> None:
    world.uniform = lambda low, high: low + luck * (high - low)
    world.api.watches = [fault]
    if only != "watch":
        world.api.lists = [fault]
    watch = world.watch()
    await world.spend(watch, 600)
    attempts = len(world.time.sleeps)
    if reason is FaultReason.FORBIDDEN and only != "watch":
        # Each denial is a line in the cluster's audit log, and rights rarely change.
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
async def test_faults_in_an_open_watch_do_not_flood_the_server(
    world: World, lines: list[Any], reason: FaultReason
) -> None:
    world.api.watches = [stream(*lines, then="end")]
    watch = world.watch()
    await world.spend(watch, 600)
    assert len(world.time.sleeps) <= FASTEST
    assert len(world.api.requests) <= 2 * FASTEST
    assert set(watch.restarts) == {reason}
    assert watch.synced


async def test_unreachable_server_gets_few_requests(world: World, unused_tcp_port: int) -> None:
    async with client(f"http://127.0.0.1:{unused_tcp_port}") as gone:
        watch = world.watch(connection=Connection(gone))
        await world.spend(watch, 600)
    assert SLOWEST <= watch.requests <= FASTEST
    assert watch.restarts == {FaultReason.UNREACHABLE: watch.requests}
    assert watch.reason.startswith("unreachable: ")
    assert not watch.synced


async def test_watches_that_end_too_soon_are_opened_less_often(world: World) -> None:
    world.api.watches = [stream(bookmark(8), then="end")]
    watch = world.watch()
    await world.spend(watch, 600)
    assert len(world.api.requests) <= FASTEST
    assert len(world.api.queries(watch=False)) == 1
    assert set(watch.restarts) == {FaultReason.ENDED}
    assert watch.reason == ""
    assert world.log.lines == []


@pytest.mark.parametrize(
    "listing",
    [page(version=""), page({"metadata": {"resourceVersion": "1"}}), page(thing("a"), token="again")],
    ids=["no version", "no name", "no end"],
)
async def test_invalid_list_is_counted_as_garbage(world: World, listing: Any) -> None:
    world.api.lists = [listing]
    watch = world.watch()
    await world.spend(watch, 600)
    assert len(world.api.requests) <= 2 * FASTEST
    assert set(watch.restarts) == {FaultReason.GARBAGE}
    assert (watch.synced, watch.store.records) == (False, {})


async def test_null_items_are_an_empty_list(world: World) -> None:
    world.api.lists = [answer('{"metadata": {"resourceVersion": "1"}, "items": null}')]
    watch = world.watch()
    world.start(watch)
    await world.until(lambda: watch.synced)
    assert watch.get("a") is ABSENT


@pytest.mark.parametrize(
    ("limit", "answers", "reason"),
    [("MAX_LINE_BYTES", "watches", FaultReason.GARBAGE), ("MAX_PAGE_BYTES", "lists", FaultReason.TOO_LARGE)],
)
async def test_endless_answer_is_aborted(
    world: World, monkeypatch: pytest.MonkeyPatch, limit: str, answers: str, reason: FaultReason
) -> None:
    monkeypatch.setattr(connection, limit, 100_000)
    setattr(world.api, answers, [stream(b"x" * 300_000)])
    watch = world.watch()
    await world.spend(watch, 60)
    assert set(watch.restarts) == {reason}


async def test_line_with_the_largest_object_is_read(world: World) -> None:
    world.api.watches = [stream(event("ADDED", "a", 8, data="\u0001" * 2**20))]
    watch = world.watch()
    world.start(watch)
    await world.until(lambda: watch.events == 1)
    assert watch.get("a") == Thing("a", 0)


async def test_internal_error_does_not_end_the_watch(world: World) -> None:
    def broken(_: object) -> str:
        raise LookupError("secret")

    watch = world.watch(Kind("things", THINGS.path, key=broken, project=THINGS.project))
    world.api.lists = [page(thing("a"))]
    await world.spend(watch, 600)
    assert len(world.api.requests) <= FASTEST
    assert set(watch.restarts) == {FaultReason.INTERNAL}
    assert watch.reason.startswith("internal: LookupError at ")
    assert not any("secret" in str(line) for line in world.log.lines)


async def test_failed_renewal_of_credentials_is_retried() -> None:
    async def renew() -> None:
        raise FileNotFoundError("/secret/token")

    async with watching(renew=renew) as world:
        world.api.lists = [refused(401)]
        watch = world.watch()
        await world.spend(watch, 600)
    assert len(world.api.requests) <= FASTEST
    assert set(watch.restarts) == {FaultReason.UNAUTHORIZED, FaultReason.INTERNAL}
    assert not any("secret" in str(line) for line in world.log.lines)
