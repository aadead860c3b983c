"""A fixture with a fake API server for watches."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.support.watch_api import Enough, serving
from tests.support.watching import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with serving(inactivity=30) as (api, connection):
        made = World(api, connection)
        yield made
        for task in made.tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, Enough):
                await task
