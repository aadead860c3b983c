"""Closes a connection that is accepted while its server closes.

Some versions of CPython fail to create the transport for a closed server, and do not close the connection
(https://github.com/python/cpython/issues/109564). The resulting warning would fail an unrelated test.
"""

import inspect
from asyncio import Server, selector_events
from collections.abc import Awaitable, Callable

LOOP = selector_events.BaseSelectorEventLoop
ACCEPT = "_accept_connection2"


def close_late_connections() -> None:
    """Make all event loops of this process close such connections."""
    accept: Callable[..., Awaitable[None]] = getattr(LOOP, ACCEPT)
    signature = inspect.signature(accept)

    async def accept_while_open(*args: object, **options: object) -> None:
        given = signature.bind(*args, **options).arguments
        server = given.get("server")
        if isinstance(server, Server) and not server.sockets:
            given["conn"].close()
        else:
            await accept(*args, **options)

    setattr(LOOP, ACCEPT, accept_while_open)
