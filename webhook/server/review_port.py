"""Connects aiohttp to the review handler: reads bodies within limits of time and memory."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from time import monotonic
from typing import Final, cast

from aiohttp import web

from webhook.server.http_request import Refused, Reply, Request, broken_off
from webhook.server.http_server import HttpConnection
from webhook.server.limits import MAX_LARGE_BODIES_BYTES, MAX_SEND_SECONDS, MIN_LARGE_BODY_BYTES
from webhook.server.review_handler import ReviewHandler

PIECE: Final = 64 * 2**10
"""Maximum number of bytes per write of a reply. One large write would put the whole reply into a buffer."""


class ReviewPort:
    """Passes each request to `application`."""

    def __init__(self, application: ReviewHandler) -> None:
        self.application = application
        self.held = 0
        """Declared bytes of the large bodies that are being received or answered."""

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        connection = cast("HttpConnection", http.protocol)
        request = Request(
            target=http.raw_path,
            method=http.method,
            headers=http.headers,
            length=connection.length,
            peer=connection.peer,
            certificate=http.get_extra_info("peercert") or {},
            started=connection.started,
        )
        try:
            self.application.expect(request)
            with self._room(request.length or 0):
                request.body = await self._body(http, request)
                reply = await self.application.answer(request)
        except Refused as refused:
            reply = self.application.refuse(request, refused)
        if len(reply.body) > PIECE:
            return await _sent_in_pieces(http, reply)
        return web.Response(body=reply.body, status=reply.status, headers=reply.headers)

    def bad_request(self, peer: str) -> web.Response:
        refused = Refused(HTTPStatus.BAD_REQUEST, "this is not HTTP")
        reply = self.application.refuse(Request(peer=peer), refused)
        return web.Response(body=reply.body, status=reply.status, headers=reply.headers)

    @contextmanager
    def _room(self, length: int) -> Iterator[None]:
        size = length if length > MIN_LARGE_BODY_BYTES else 0
        if size and self.held + size > MAX_LARGE_BODIES_BYTES:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many large bodies at once", shed=True)
        self.held += size
        try:
            yield
        finally:
            self.held -= size

    async def _body(self, http: web.BaseRequest, request: Request) -> bytes:
        if http.content.is_eof():
            return http.content.read_nowait()
        if http.headers.get("Expect", "").lower() == "100-continue":
            await http.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            http.writer.output_size = 0
        try:
            async with asyncio.timeout(max(0.0, request.deadline - monotonic())):
                return await http.content.read()
        except TimeoutError:
            raise request.too_late() from None
        except ConnectionError:
            raise broken_off() from None
        except asyncio.CancelledError:  # the client has disconnected
            self.application.refuse(request, broken_off())
            raise


async def _sent_in_pieces(http: web.BaseRequest, reply: Reply) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_length = len(reply.body)
    try:
        async with asyncio.timeout(MAX_SEND_SECONDS):
            await response.prepare(http)
            for start in range(0, len(reply.body), PIECE):
                await response.write(reply.body[start : start + PIECE])
    except TimeoutError:
        cast("HttpConnection", http.protocol).cut("unread")
    return response
