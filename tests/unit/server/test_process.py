"""What the process does besides serving."""

import asyncio
import gc

import pytest

from webhook.server.process import _freeze


async def test_the_garbage_collector_is_spared_the_caches_once_they_are_full(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(gc, "set_threshold", lambda *portions: calls.append(f"by {portions}"))
    settled = asyncio.Event()
    task = asyncio.create_task(_freeze(settled))
    await asyncio.sleep(0)
    assert calls == []
    settled.set()
    await task
    assert calls == ["collect", "freeze", "by (1000, 2, 300)"]
