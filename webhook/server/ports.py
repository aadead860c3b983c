"""Listening ports with a maximum number of connections. Closing a port closes its connections."""

import asyncio
import os
import socket
from contextlib import suppress
from ssl import SSLContext, SSLError
from typing import cast

from webhook.client.calls import Address
from webhook.server.http_server import HttpConnection, HttpServer
from webhook.server.limits import MAX_HANDSHAKE_SECONDS

# When the port closes: seconds in which all clients together can complete the TLS shutdown.
CLOSE_SECONDS = 1.0
EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - compared, never bound
BACKLOG = 1024
# When one connection closes: seconds in which its client can read the last reply and end TLS.
SHUTDOWN_SECONDS = 2.0
# Seconds to wait for a free descriptor.
PAUSE_SECONDS = 0.1


class ListenError(Exception):
    """The message says why the address cannot be listened on."""


class Port:
    """A listening address. Its connections go to `server`, up to the server's maximum."""

    def __init__(self, server: HttpServer, listener: socket.socket, context: SSLContext | None) -> None:
        self._server = server
        self._listener = listener
        self._context = context
        self._opening: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept())
        self.listening = True

    @property
    def number(self) -> int:
        return int(self._listener.getsockname()[1])

    async def stop(self) -> None:
        self.listening = False
        await _ended([self._accepting])
        self._listener.close()

    async def close(self) -> None:
        """End every connection. Clients get `CLOSE_SECONDS` to end TLS.

        An event loop with open transports does not close cleanly.
        """
        await self.stop()
        await _ended(list(self._opening))
        server = self._server
        server.pre_shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while server.connections:  # noqa: ASYNC110 - there is no event for the end of a connection
                    await asyncio.sleep(0.01)
        for connection in server.connections:
            cast("HttpConnection", connection).abort()
        await server.shutdown(CLOSE_SECONDS)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listener)
            except OSError as error:  # no free descriptor, or the client has disconnected
                self._server.limit.turned_away("descriptors", os.strerror(error.errno or 0))
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            accepted.setblocking(False)
            opening = asyncio.create_task(self._open(accepted, str(address[0]).removeprefix("::ffff:")))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)

    async def _open(self, accepted: socket.socket, peer: str) -> None:
        task = asyncio.current_task()
        assert task is not None, "this runs in a task"  # noqa: S101 - for the type checker
        connection = self._server.connect(peer, task.cancel)
        if not self._server.limit.admit(connection):
            accepted.close()
            return
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=MAX_HANDSHAKE_SECONDS if self._context else None,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS if self._context else None,
            )
        except BaseException as error:
            self._server.limit.forget(connection)
            accepted.close()
            if not isinstance(error, (OSError, SSLError, TimeoutError)):
                raise
            self._server.limit.turned_away("handshake", peer)


def listen(server: HttpServer, address: Address, context: SSLContext | None = None) -> tuple[Port, str]:
    """The port and its URL; ListenError if the address cannot be listened on."""
    host, port = address
    try:
        listener = _bound(host, port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise ListenError(f"cannot listen on {_authority(host, port)}: {reason}") from None
    opened = Port(server, listener, context)
    scheme = "http" if context is None else "https"
    return opened, f"{scheme}://{_authority(host, opened.number)}"


def _bound(host: str, port: int) -> socket.socket:
    if host in EVERY_ADDRESS:
        # IPv4 and IPv6: a pod may have only one of them.
        if socket.has_dualstack_ipv6():
            listener = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        else:
            listener = socket.create_server(("", port), backlog=BACKLOG)
    else:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    listener.setblocking(False)
    return listener


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
