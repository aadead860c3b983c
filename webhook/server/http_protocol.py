"""HTTP/1.1 on the review port, right on its TLS connections.

aiohttp's server, which the operations port has, costs more than all else around a review: it has a task for each
connection, and makes objects of headers, URLs and bodies for which nobody asks here.

The requests of a connection are answered one after the other, and while one that is complete waits no more are read.
"""

import asyncio
from asyncio import BaseTransport, Task, TimerHandle, Transport
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Any, Final, cast

from webhook.server.connections import Connections
from webhook.server.http_reader import RequestReader
from webhook.server.memory import SMALL, MemoryBudget
from webhook.server.requests import Application, Refused, Reply, Request, broken_off
from webhook.server.turns import Turns

# Seconds. Go clients keep an idle connection for 90: none is closed just when they send another request.
KEEPALIVE_SECONDS: Final = 200.0
# How long a client may take to read its reply.
SEND_SECONDS = 10.0
# How long the rest of a refused body is read and thrown away.
LINGER_SECONDS: Final = 2.0
# Requests that a client sends ahead of their replies. A read of uvloop's may have ten thousand.
MOST_AHEAD: Final = 512
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class HttpServer:
    """Makes the protocol of each connection of a port, and has what these share."""

    def __init__(self, application: Application, of_port: Connections) -> None:
        self.application = application
        self.of_port = of_port
        self.memory = MemoryBudget()
        self.turns = Turns()
        self.draining = False
        """Each reply closes its connection."""
        self.in_flight = 0
        """Requests that wait for their reply."""
        self.connections: set[HttpProtocol] = set()
        """Those that are open."""
        self._idle = asyncio.Event()

    def __call__(self) -> "HttpProtocol":
        """For a new connection."""
        return HttpProtocol(self)

    async def idle(self) -> None:
        """Return when no request waits for its reply."""
        while self.in_flight:
            self._idle.clear()
            await self._idle.wait()

    def ended(self, request: Request) -> None:
        """One has got its reply, or cannot get it."""
        self.in_flight -= 1
        if not self.in_flight:
            self._idle.set()
        if request.claim is not None:
            request.claim.give_back()

    def pre_shutdown(self) -> None:
        """Close the connections that are idle now, and each other one with its reply."""
        self.draining = True
        for each in [*self.connections]:
            each.close_if_idle()

    async def shutdown(self, _: float | None = None) -> None:
        """Give up what requests wait for."""
        for each in self.connections:
            each.give_up()


class HttpProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: HttpServer) -> None:
        self.transport: Transport | None = None
        self._server = server
        self._application = server.application
        self._loop = asyncio.get_running_loop()
        self._reader: RequestReader | None = None
        """None when no more is to be read."""
        self._requests: deque[Request] = deque()
        """Those whose head is there and that have no reply; of the last the body may be missing."""
        self._work: Task[Reply] | None = None
        """Waits for the reply to the first."""
        self._in_line = False
        """The first is complete, and it is not the turn of its address."""
        self._unsent = memoryview(b"")
        """Of the reply to the first, while the client does not read."""
        self._writing_paused = self._reading_paused = False
        self._timer: TimerHandle | None = None
        """For a body that does not come, a reply that is not read, or the end."""

    def connection_made(self, transport: BaseTransport) -> None:
        """It is open."""
        self.transport = cast("Transport", transport)  # uvloop's is one by its methods alone
        self.transport.set_write_buffer_limits(SMALL)
        self._peer = str((transport.get_extra_info("peername") or [""])[0])
        self._address = self._server.turns.of(self._peer)
        self._certificate: Mapping[str, Any] = transport.get_extra_info("peercert") or {}
        self._reader = RequestReader(self._begun, lambda: self._server.memory.claim(self._peer))
        self._connection = self._server.of_port.of(self)
        self._used = monotonic()
        self._keeping = self._loop.call_later(KEEPALIVE_SECONDS, self._close_unused)
        self._server.connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        """It has ended, and with it its requests: else work for nobody would gather while it waits for its turn."""
        self._server.connections.discard(self)
        self.transport = None
        self._keeping.cancel()
        self._stop_timer()
        self.give_up()
        self._unsent = memoryview(b"")
        if self._requests and not self._requests[-1].complete and not self._requests[-1].refused:
            self._application.refuse(self._requests[-1], broken_off())
        self._read_no_more()
        self._connection = None  # which holds this object

    def data_received(self, data: bytes) -> None:
        """Read requests, and answer the first that is complete."""
        if self._reader is None:
            return
        try:
            self._reader.feed(data)
        except Refused as refused:
            if not self._requests or self._requests[-1].complete:
                self._begun(Request(complete=True, refused=refused))
            self._stop_reading()
        self._go_on()

    def pause_writing(self) -> None:
        """The client does not read its replies."""
        self._writing_paused = True
        if not self._unsent or self._timer is None:
            self._start_timer(SEND_SECONDS, self._abort)

    def resume_writing(self) -> None:
        """It does again."""
        self._writing_paused = False
        if self._unsent:
            self._send()
        else:
            self._stop_timer()
        self._go_on()

    def close_if_idle(self) -> None:
        """End it unless a request waits for its reply."""
        if self.transport is not None and not self._requests:
            self.transport.close()

    def give_up(self) -> None:
        """End the work on the first request, if there is any."""
        if self._work is not None:
            self._work.cancel()

    def _begun(self, request: Request) -> None:
        """The head of another request is there. Refused when too many wait already."""
        if request.refused is None and len(self._requests) >= MOST_AHEAD:
            raise Refused(HTTPStatus.BAD_REQUEST, "too many requests ahead of their replies")
        self._requests.append(request)
        self._server.in_flight += 1
        if self._connection is not None:
            self._connection.begins()
        request.peer, request.certificate = self._peer, self._certificate
        if request.refused is None:
            try:
                self._application.expect(request)
            except Refused as refused:
                request.refuse(refused)

    def _go_on(self) -> None:
        """Answer the first request as soon as all of it is there."""
        at_work = self._in_line or self._work is not None
        if self._requests and not at_work and not self._writing_paused and self.transport is not None:
            request = self._requests[0]
            if request.refused is not None:
                self._reply(self._application.refuse(request, request.refused))
            elif request.complete:
                self._stop_timer()
                self._in_line = True
                self._server.turns.take(self._address, self._answer)
            elif self._timer is None:
                self._start_timer(request.deadline - monotonic(), self._too_late)
                if request.headers.pop(b"expect", b"").lower() == b"100-continue":
                    self.transport.write(CONTINUE)
        self._pace()

    def _answer(self) -> None:
        """Answer the first request, which is complete, unless its connection has ended."""
        self._in_line = False
        if not self._requests:
            return
        try:
            answer = self._application.answer(self._requests[0])
            if isinstance(answer, Reply):
                self._reply(answer)
            else:
                self._work = self._loop.create_task(self._server.turns.paced(self._address, answer))
                self._work.add_done_callback(partial(self._answered, answer))
            self._pace()
        except Exception:
            self._break_off()
            raise

    def _pace(self) -> None:
        """Read no more while a request that is complete waits for its reply."""
        waits = bool(self._requests) and self._requests[0].complete
        if waits is not self._reading_paused and self.transport is not None and not self.transport.is_closing():
            self._reading_paused = waits
            if waits:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    def _reply(self, reply: Reply) -> None:
        """Answer the first request."""
        request = self._requests[0]
        self._stop_timer()
        if self.transport is None:
            self._forget(self._requests.popleft())
            return
        try:
            request.pieces.clear()
            request.hold(len(reply.body))
        except Refused as refused:
            reply = self._application.refuse(request, refused)
        self._unsent = memoryview(reply.wire(keep_alive=self._stays(request)))
        self._send()

    def _send(self) -> None:
        """Hand on as much of the reply as the client reads: what the transport holds is counted nowhere."""
        while self._unsent and not self._writing_paused and self.transport is not None:
            piece, self._unsent = self._unsent[:SMALL], self._unsent[SMALL:]
            self.transport.write(piece)
        if self._unsent:
            return
        if not self._writing_paused:
            self._stop_timer()
        request = self._requests.popleft()
        self._forget(request)
        if not self._stays(request):
            self._read_no_more()
            if request.complete:
                self._close()
            else:
                self._start_timer(LINGER_SECONDS, self._close)
        elif self._requests:  # not at once: others have their turn
            self._loop.call_soon(self._go_on)

    def _answered(self, answer: Coroutine[Any, Any, Reply], work: Task[Reply]) -> None:
        self._work = None
        if work.cancelled():
            answer.close()  # which may not have begun
            self._forget(self._requests.popleft())
            self._abort()
        else:
            try:
                self._reply(work.result())
                self._pace()
            except Exception:
                self._break_off()
                raise

    def _break_off(self) -> None:
        """After a fault of ours: nothing would ever answer what waits here."""
        self._read_no_more()
        self._abort()

    def _stays(self, request: Request) -> bool:
        """Whether more may follow on the connection."""
        return request.keep_alive and request.complete and not self._server.draining

    def _forget(self, request: Request) -> None:
        self._server.ended(request)
        self._used = self._server.of_port.clock()
        if self._connection is not None:
            self._connection.ends(self._used)

    def _read_no_more(self) -> None:
        """Throw away what comes, and the requests that have come but for the one that is at work."""
        self._stop_reading()
        while len(self._requests) > (self._work is not None):
            self._forget(self._requests.pop())

    def _stop_reading(self) -> None:
        if self._reader is not None:
            self._reader.end()
            self._reader = None

    def _too_late(self) -> None:
        self._timer = None
        self._requests[0].refuse(self._requests[0].too_late())
        self._go_on()

    def _close_unused(self) -> None:
        left = KEEPALIVE_SECONDS if self._requests else self._used + KEEPALIVE_SECONDS - monotonic()
        if left > 0:
            self._keeping = self._loop.call_later(left, self._close_unused)
        else:
            self.close_if_idle()

    def _close(self) -> None:
        """End it once all that was written is read."""
        if self.transport is not None:
            self._start_timer(SEND_SECONDS, self._abort)
            self.transport.close()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _start_timer(self, seconds: float, then: Callable[[], object]) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(max(0.0, seconds), then)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
