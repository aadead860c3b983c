"""A server on loopback, in a thread of the test."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

ENDING = web.AppKey("ending", asyncio.Event)
"""An event of every served application. It is set when the server stops, so that handlers do not wait forever."""


@contextmanager
def served(app: web.Application, *, shutdown_timeout: float = 1) -> Iterator[str]:
    """Serve `app` until the block ends. Yields its URL."""
    app[ENDING] = end = asyncio.Event()
    ready = threading.Event()
    started: list[tuple[str, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=shutdown_timeout)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        started.append((f"http://127.0.0.1:{runner.addresses[0][1]}", asyncio.get_running_loop()))
        ready.set()
        await end.wait()
        await runner.cleanup()
        await asyncio.sleep(0.01)  # the last accepted connection is closed in the next turns of the loop

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    [(url, loop)] = started
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
