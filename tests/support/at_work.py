"""Run what never ends, for as long as a block takes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any


@asynccontextmanager
async def at_work(run: Callable[[], Any]) -> AsyncIterator[None]:
    """Run a watch, or a companion, until the block ends."""
    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
