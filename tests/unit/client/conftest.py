"""A fixture with a fake API server for watches."""

from collections.abc import AsyncIterator

import pytest

from tests.support.watching import World, watching


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with watching(inactivity=30) as made:
        yield made
