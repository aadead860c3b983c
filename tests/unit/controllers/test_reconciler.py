"""Every added key is reconciled, retried after a failure, and never reconciled twice at the same time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from tests.support.logs import Log
from tests.support.virtual_time import run
from tests.support.watch_api import until
from webhook.client.calls import ApiError
from webhook.controllers import reconciler as module
from webhook.controllers.reconciler import DONE, FAILED, FORGOTTEN, PacedClient, Reconciler, Restraint


@asynccontextmanager
async def running(
    reconcile: Callable[[Any], Awaitable[float | None]], **settings: Any
) -> AsyncIterator[tuple[Reconciler[Any], Log]]:
    """A reconciler that runs until the block ends, and its log."""
    log = Log()
    reconciler = Reconciler("tests", reconcile, log=log, **settings)
    task = asyncio.create_task(reconciler.run())
    try:
        yield reconciler, log
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_concurrency_is_limited_for_a_thousand_keys() -> None:
    at_work: set[int] = set()
    worked: Counter[int] = Counter()
    most = 0

    async def reconcile(key: int) -> None:
        nonlocal most
        assert key not in at_work
        at_work.add(key)
        most = max(most, len(at_work))
        await asyncio.sleep(0)
        at_work.discard(key)
        worked[key] += 1

    async with running(reconcile, at_once=4) as (reconciler, _):
        for key in [*range(1000), *range(1000)]:
            reconciler.add(key)
        assert reconciler.waiting == 1000
        await until(lambda: reconciler.waiting == 0)
    assert most == 4
    assert worked == dict.fromkeys(range(1000), 1)
    assert reconciler.results == {DONE: 1000, FAILED: 0}


async def test_failed_key_is_retried_without_blocking_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY", 0)
    failures = {"denied": 2, "broken": 1}

    async def reconcile(key: str) -> None:
        if failures.get(key):
            failures[key] -= 1
            raise ApiError(403, "the API server refuses: no") if key == "denied" else ValueError("text of an object")

    async with running(reconcile) as (reconciler, log):
        for key in ("denied", "broken", "good"):
            reconciler.add(key)
        await until(lambda: reconciler.results == {DONE: 3, FAILED: 3})
        assert reconciler.failing == 0
        assert reconciler.problem == ""
    assert [level for level, event, _ in log.lines if event == "controller failed"] == ["warning", "error"]
    assert log.events("controller failed")[0]["reason"] == "the API server refuses: no"
    assert "object" not in log.events("controller failed")[1]["reason"]
    assert log.told[-1] == "controller recovered"


def test_permanent_failure_is_retried_with_growing_delays_and_reported() -> None:
    tries: list[float] = []

    async def reconcile(_: str) -> None:
        tries.append(asyncio.get_running_loop().time())
        raise ApiError(403, "no right")

    async def main() -> None:
        async with running(reconcile, uniform=lambda _, most: most) as (reconciler, log):
            reconciler.add("a")
            await asyncio.sleep(1500)
            assert reconciler.problem == "1 failed and will be tried again; the last: no right"
            assert (reconciler.failing, reconciler.waiting, reconciler.idle) == (1, 0, False)
            assert len(log.events("controller failed")) == 1

    run(main())
    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert pauses[:10] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]


async def test_key_added_during_its_reconciliation_is_reconciled_again() -> None:
    looks: list[str] = []

    async def reconcile(key: str) -> None:
        looks.append(key)
        if len(looks) == 1:
            await asyncio.sleep(0.001)  # the key is being reconciled, so it is not waiting
            reconciler.add(key)
            await asyncio.sleep(0.001)

    async with running(reconcile) as (reconciler, _):
        reconciler.add("a")
        async with asyncio.timeout(20):
            await until(lambda: len(looks) == 2)


async def test_key_is_reconciled_again_at_the_requested_time() -> None:
    looks: list[str] = []

    async def reconcile(key: str) -> float | None:
        looks.append(key)
        return 0 if len(looks) < 3 else None

    async with running(reconcile) as (reconciler, _):
        reconciler.add("a")
        await until(lambda: len(looks) == 3)
        await until(lambda: reconciler.waiting == 0)
    assert looks == ["a"] * 3


async def test_earliest_requested_time_wins() -> None:
    looks: list[str] = []

    async def reconcile(key: str) -> None:
        looks.append(key)

    async with running(reconcile) as (reconciler, _):
        reconciler.add("later", 3600)
        reconciler.add("later", 7200)
        reconciler.add("now")
        await until(lambda: looks == ["now"])
        assert reconciler.waiting == 0
        reconciler.add("later")
        await until(lambda: looks == ["now", "later"])


async def test_stopping_cancels_running_reconciliations() -> None:
    ended: list[str] = []

    async def reconcile(key: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(key)

    async with running(reconcile) as (reconciler, _):
        reconciler.add("a")
        reconciler.add("b")
        await until(lambda: reconciler.waiting == 2)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert sorted(ended) == ["a", "b"]


class Api:
    """A fake client that records the times of its calls."""

    def __init__(self) -> None:
        self.calls: list[float] = []

    async def request(self, method: str, path: str, body: Any) -> dict[str, Any]:
        self.calls.append(round(asyncio.get_running_loop().time(), 6))
        return {"method": method, "path": path, "body": body}


def called(*calls: int, burst: int, pause: float = 0) -> list[float]:
    """Return the times of calls in bursts of these sizes, at 10 calls per second, with a `pause` after each burst."""
    api: Any = Api()

    async def call() -> None:
        paced = PacedClient(api, rate=10, burst=burst)
        for number in calls:
            await asyncio.gather(*(paced.request("GET", "/version") for _ in range(number)))
            await asyncio.sleep(pause)
        assert paced.requests == sum(calls)

    run(call())
    return api.calls  # type: ignore[no-any-return]


TENTHS = [round(n / 10, 6) for n in range(1, 21)]


@pytest.mark.parametrize("calls", [(25,), (1,) * 25], ids=["at the same time", "one after the other"])
def test_burst_is_immediate_and_the_other_calls_follow_at_the_rate(calls: tuple[int, ...]) -> None:
    assert called(*calls, burst=5) == [0] * 5 + TENTHS


def test_pause_allows_another_burst_of_the_same_size() -> None:
    assert called(5, 6, burst=5, pause=1000) == [0] * 5 + [1000] * 5 + [1000.1]


async def test_call_and_response_are_passed_on() -> None:
    answer = await PacedClient(Api()).request("PATCH", "/x", {"a": 1})  # type: ignore[arg-type]  # the fake has the method that is called
    assert answer == {"method": "PATCH", "path": "/x", "body": {"a": 1}}


def test_pauses_between_writes_for_a_key_grow_to_five_minutes() -> None:
    restraint, now, pauses = Restraint[str](), 0.0, []
    for _ in range(12):
        pause = restraint.wait("a", now)
        pauses.append(pause)
        now += pause
        assert restraint.wait("a", now) == 0
        restraint.note("a", now)
    assert pauses == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert restraint.wait("b", now) == 0


def test_pauses_are_short_again_for_a_key_that_was_quiet_or_is_finished() -> None:
    restraint = Restraint[str]()
    for _ in range(5):
        restraint.note("a", 0)
    assert restraint.wait("a", 1) == 15
    restraint.note("a", FORGOTTEN + 1)
    assert restraint.wait("a", FORGOTTEN + 1) == 1
    restraint.forget("a")
    assert restraint.wait("a", FORGOTTEN + 1) == 0
