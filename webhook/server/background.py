"""Background tasks that run alongside reviews. If a task fails, it is logged and restarted, and the service goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from webhook.client import wire

RESTART_SECONDS: Final = 5.0
# Seconds after which a restarted task counts as recovered.
STEADY_SECONDS: Final = 60.0


@asynccontextmanager
async def in_background(
    name: str,
    work: Callable[[], Coroutine[Any, Any, object]],
    *,
    log: Any,
    faults: MutableMapping[str, str] | None = None,
) -> AsyncIterator[None]:
    """Run `work` until it is done or the block ends. Restart it after an error.

    After a failure, `faults` maps `name` to a text for the administrator until the task has run for `STEADY_SECONDS`.
    """
    recorded = {} if faults is None else faults

    async def again_and_again() -> None:
        while True:
            steady = asyncio.get_running_loop().call_later(STEADY_SECONDS, recorded.pop, name, None)
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - the task must be restarted after any error
                fault = wire.place(error)
                recorded[name] = f"it failed and was restarted: {fault}"
                log.error(name, fault=fault)  # noqa: TRY400 - the log must not contain text of objects
            else:
                recorded.pop(name, None)
                return
            finally:
                steady.cancel()
            await asyncio.sleep(RESTART_SECONDS)

    async with at_work(again_and_again):
        yield


@asynccontextmanager
async def at_work(work: Callable[[], Coroutine[Any, Any, object]]) -> AsyncIterator[None]:
    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
