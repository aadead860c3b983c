"""Work beside reviews: what fails there is logged and begun again, and never ends the service."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from webhook.client import wire

RESTART_SECONDS: Final = 5.0


@asynccontextmanager
async def in_background(name: str, work: Callable[[], Coroutine[Any, Any, object]], *, log: Any) -> AsyncIterator[None]:
    """Run `work` until the block ends; begin again if it fails."""

    async def again_and_again() -> None:
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - nobody else would begin it again
                log.error(name, fault=wire.place(error))  # noqa: TRY400 - no text of objects
            await asyncio.sleep(RESTART_SECONDS)

    async with at_work(again_and_again):
        yield


@asynccontextmanager
async def at_work(work: Callable[[], Coroutine[Any, Any, object]]) -> AsyncIterator[None]:
    """Run what never ends, until the block does."""
    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
