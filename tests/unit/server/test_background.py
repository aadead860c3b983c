"""Work in the background: begun again when it fails, and over when the service is."""

import asyncio

import pytest

from tests.support.logs import Log
from tests.support.watch_api import until
from webhook.server import background


async def test_work_that_fails_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
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
