"""Ports: opened with a clear error, closed without leaving a connection behind."""

import asyncio
import os
from contextlib import AsyncExitStack, suppress
from ssl import SSLContext

from aiohttp import web

from webhook.client.calls import Address

# Time for clients to take part in the end of a TLS connection, when no review is at work any more.
CLOSE_SECONDS = 1.0
EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - only compared with


class ListenError(Exception):
    """The address cannot be listened on; the message says why."""


async def listen(
    stack: AsyncExitStack, runner: web.BaseRunner, address: Address, context: SSLContext | None = None
) -> tuple[web.BaseSite, str]:
    """Listen until `stack` ends; returns the site and its URL. ListenError when that is not possible."""
    host, port = address
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    # All addresses are those of both families: a pod may have only IPv6.
    site = web.TCPSite(runner, None if host in EVERY_ADDRESS else host, port, ssl_context=context)
    try:
        await site.start()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise ListenError(f"cannot listen on {_authority(host, port)}: {reason}") from None
    scheme = "http" if context is None else "https"
    return site, f"{scheme}://{_authority(host, runner.addresses[0][1])}"


async def hang_up(server: web.Server) -> None:
    """End every connection, and cut off those whose clients do not answer within `CLOSE_SECONDS`.

    aiohttp would leave these open, and an event loop with open transports does not close cleanly.
    """
    server.pre_shutdown()
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            while server.connections:  # noqa: ASYNC110 - aiohttp has no event for the end of one
                await asyncio.sleep(0.01)
    left = [connection.transport for connection in server.connections]
    await server.shutdown(0)
    for transport in left:
        if transport is not None:
            transport.abort()


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
