"""aiohttp's server, with the limits that aiohttp lacks.

An API server sends one request at a time and declares its length. If a client does anything else, its connection is
closed after the reply. Nothing more from the client is parsed, because parsing costs processor time.
"""

import asyncio
import resource
from asyncio import BaseTransport, TimerHandle, Transport
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.http import RawRequestMessage

from webhook.server.limits import MAX_CONNECTIONS, MAX_HEAD_BYTES, MAX_HEAD_SECONDS, MAX_UNSENT_BYTES
from webhook.server.log import RefusalLog

LINGER_SECONDS: Final = 2.0
"""Seconds in which the rest of a body is dropped after an early reply, so that the client can read the reply."""
AHEAD_SECONDS: Final = 0.2
"""Seconds in which a client that sent a second request can read the reply to the first."""
KEEPALIVE_SECONDS: Final = 200.0
"""Seconds after which an idle connection is closed. Go clients close it after 90 s, before the server does."""
# Descriptors for everything except connections: the operations port, calls to the API server, files.
RESERVED: Final = 256
LEAST: Final = 32
# Reasons to reject or abort a connection, which are the values of a metric's label.
REASONS: Final = ("full", "handshake", "silent", "head", "ahead", "unread", "descriptors")

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Connections:
    """The connections of one port. Every pod of the cluster may open some.

    At the maximum, a new connection replaces the connection that has been idle for longest. `refused` gets the reason
    for each rejected or aborted connection.
    """

    maximum: int
    refused: Callable[[str], object]
    log: RefusalLog
    _open: set["HttpConnection"] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: "HttpConnection") -> bool:
        """Count a new connection; False if it must be rejected because all others are busy."""
        if len(self._open) >= self.maximum:
            idle = [other for other in self._open if not other.busy]
            if not idle:
                self.turned_away("full", connection.peer)
                return False
            min(idle, key=lambda other: other.used).cut("full")
        self._open.add(connection)
        return True

    def forget(self, connection: "HttpConnection") -> None:
        self._open.discard(connection)

    def turned_away(self, reason: str, peer: str) -> None:
        self.refused(reason)
        self.log.warning("connection refused", reason=reason, peer=peer)


class HttpServer(web.Server):
    """`handler` gets a request when its head is parsed. `bad_request` makes the reply to invalid HTTP."""

    def __init__(
        self, handler: Handler, connections: Connections, bad_request: Callable[[str], web.Response] | None = None
    ) -> None:
        super().__init__(
            self._handle,
            handler_cancellation=True,  # no work for a disconnected client
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,
            access_log=None,
        )
        self.handler = handler
        self.limit = connections
        self.bad_request = bad_request or _bad_request
        self.draining = False
        """If True, each reply closes its connection."""
        self.in_flight = 0
        self._idle = asyncio.Event()

    def connect(self, peer: str, abort: Callable[[], object]) -> "HttpConnection":
        """Make a connection. Until the handshake is over, `abort` ends it."""
        return HttpConnection(self, peer, abort, loop=self._loop, **self._kwargs)

    async def idle(self) -> None:
        """Return when every request has its reply."""
        while self.in_flight:
            self._idle.clear()
            await self._idle.wait()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.in_flight += 1
        connection = cast("HttpConnection", request.protocol)
        try:
            response = await self.handler(request)
        finally:
            connection.replied()
            self.in_flight -= 1
            if not self.in_flight:
                self._idle.set()
        if self.draining or connection.last or not request.content.is_eof():
            connection.last = True
            response.force_close()
        return response


class HttpConnection(web.RequestHandler):
    """A connection. It gives aiohttp's parser one head, then as many bytes as the head's Content-Length says."""

    def __init__(self, server: HttpServer, peer: str, abort: Callable[[], object], **options: Any) -> None:
        super().__init__(server, **options)
        self.peer = peer
        self.used = monotonic()
        """When the connection was opened or last sent a reply."""
        self.started = 0.0
        """When the head of the current request arrived."""
        self.length: int | None = None
        self.busy = False
        """True while a request has no reply."""
        self.last = False
        """True if no further request is accepted."""
        self.abort = abort
        self._server = server
        self._ahead = False  # the client has sent more than one request
        self._head = b""
        self._body_left = 0
        self._timer: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        """Called when the handshake is over."""
        super().connection_made(transport)
        opened = cast("Transport", transport)  # uvloop's transport has the methods of Transport
        opened.set_write_buffer_limits(MAX_UNSENT_BYTES)
        self.abort = opened.abort
        self._start_timer(MAX_HEAD_SECONDS, "silent")

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_timer()
        self._server.limit.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass on the bytes of the current request, or the head of the next request."""
        if self._body_left or not data:  # aiohttp itself passes b"" to continue with buffered bytes
            body, data = data[: self._body_left], data[self._body_left :]
            self._body_left -= len(body)
            super().data_received(body)
        if not data:
            return
        if self.busy or self.last:
            self._read_no_more()
        elif self.transport is not None and self.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self.cut("unread")
        else:
            self._read_head(self._head + data)

    def replied(self) -> None:
        """Called when the current request has its reply, or was dropped."""
        self.busy, self.used = False, monotonic()
        if self._ahead:
            self._start_timer(AHEAD_SECONDS, "ahead")

    def _read_no_more(self) -> None:
        # From now on no bytes are read, not even for a clean end of TLS: decrypting a flood would stall all reviews.
        self.last = self._ahead = True
        if self.transport is not None:
            self.transport.pause_reading()
        if not self.busy:
            self._start_timer(AHEAD_SECONDS, "ahead")

    def _read_head(self, data: bytes) -> None:
        data = data.lstrip(b"\r\n")
        end = data.find(b"\r\n\r\n") + 4
        complete = end >= 4
        if (end if complete else len(data)) > MAX_HEAD_BYTES:
            self.cut("head")
        elif not complete:
            self._head = data
            if self._timer is None:
                self._start_timer(MAX_HEAD_SECONDS, "silent")
        else:
            self._stop_timer()
            self._head, self.busy, self.started = b"", True, monotonic()
            super().data_received(data[:end])
            if not self._messages:  # these bytes begin HTTP/2
                self.cut("head")
                return
            message, _ = self._messages[-1]
            given = message.headers.get("Content-Length") if isinstance(message, RawRequestMessage) else None
            # the parser accepts any number of leading zeros, int() does not
            self.length = None if given is None else int(given.lstrip("0") or 0)
            self._body_left = self.length or 0
            if data[end:]:
                self.data_received(data[end:])

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The reply to bytes that the parser rejects. aiohttp would log the bytes."""
        if status != web.HTTPBadRequest.status_code:
            return super().handle_error(request, status, exc, message)
        response = self._server.bad_request(self.peer)
        response.force_close()
        return response

    def close(self) -> None:
        """End the connection after the reply to the current request."""
        self.last = True
        if not self.busy:  # aiohttp's own close() may leave a new request without a reply
            self.force_close()

    def cut(self, reason: str) -> None:
        self._server.limit.turned_away(reason, self.peer)
        self._server.limit.forget(self)
        self.abort()

    def _start_timer(self, seconds: float, reason: str) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self.cut, reason)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _bad_request(_: str) -> web.Response:
    return web.Response(status=400, text="this is not HTTP\n")


def most_connections() -> int:
    """The connections that the descriptors of this process allow, at most `MAX_CONNECTIONS`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else max(LEAST, min(MAX_CONNECTIONS, soft - RESERVED))
