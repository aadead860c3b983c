"""Memory that is not needed any more goes back to the system."""

import asyncio
from contextlib import suppress

import pytest

from webhook.server import memory


async def test_it_goes_back_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    times = asyncio.Semaphore(0)
    monkeypatch.setattr(memory, "SECONDS", 0)
    monkeypatch.setattr(memory, "give_back", times.release)
    task = asyncio.create_task(memory.kept_small())
    for _ in range(3):
        await times.acquire()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_it_can_go_back_on_this_machine() -> None:
    memory.give_back()
