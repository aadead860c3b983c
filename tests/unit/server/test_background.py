"""Background tasks are restarted after a failure and end with the service."""

import asyncio
import re
from collections.abc import Callable

import pytest

from tests.support.logs import Log
from tests.support.watch_api import until
from webhook.server import background


async def test_failed_task_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RESTART_SECONDS", 0)
    log, runs = Log(), 0

    async def work() -> None:
        nonlocal runs
        runs += 1
        raise ValueError("the text of an object")

    async with background.in_background("certificates", work, log=log):
        await until(lambda: runs > 1)
    ended = runs
    await asyncio.sleep(0)
    assert runs == ended
    assert all("object" not in line["fault"] for line in log.events("certificates"))


async def test_finished_task_is_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RESTART_SECONDS", 0)
    runs = []

    async def work() -> None:
        runs.append(1)

    async with background.in_background("first answers", work, log=Log()):
        for _ in range(10):
            await asyncio.sleep(0)
    assert runs == [1]


async def test_fault_is_reported_until_the_restarted_task_has_run_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RESTART_SECONDS", 0)
    log, faults, runs = Log(), dict[str, str](), []
    steady: list[Callable[[], object]] = []

    class Handle:
        cancel = steady.clear

    def later(seconds: float, callback: Callable[..., object], *arguments: object) -> Handle:
        assert seconds == background.STEADY_SECONDS
        steady.append(lambda: callback(*arguments))
        return Handle()

    async def work() -> None:
        runs.append(1)
        if len(runs) < 3:
            raise KeyError("the text of an object")
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", later, raising=False)
    async with background.in_background("policies", work, log=log, faults=faults):
        await until_soon(lambda: len(runs) == 3)
        [(name, fault)] = faults.items()
        assert name == "policies"
        assert fault.startswith("it failed and was restarted: KeyError at ")
        assert "object" not in fault
        [now] = steady  # the timers of both failed tasks are cancelled
        now()
        assert faults == {}
    assert len(log.events("policies")) == 2


async def test_fault_in_a_task_group_names_the_code_that_raised_it() -> None:
    """Formerly, the reported fault named the task group, not the failed task."""
    log = Log()

    async def part() -> None:
        raise KeyError("the text of an object")

    async def work() -> None:
        async with asyncio.TaskGroup() as outer:

            async def inner() -> None:
                async with asyncio.TaskGroup() as group:
                    group.create_task(part())

            outer.create_task(inner())

    async with background.in_background("policies", work, log=log):
        await until_soon(lambda: log.lines)
    [line] = log.events("policies")
    assert re.fullmatch(rf"KeyError at {re.escape(__file__)}:\d+", line["fault"])


async def until_soon(condition: Callable[[], object]) -> None:
    """Let other tasks run until `condition` holds, without the loop's clock."""
    while not condition():  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0)
