"""Requests out of the bytes of one connection, by httptools' parser: Node's llhttp, as strict as it comes."""

from collections.abc import Callable
from http import HTTPStatus
from time import monotonic
from typing import Final

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from webhook.server.memory import Claim
from webhook.server.requests import MAX_BODY, Refused, Request, broken_off, too_large

# Bytes of a request that are not of its body, but for the framing of chunks: one of a single byte has five more. Each
# takes time, and nobody sends a large body byte by byte: there is framing for so many.
MAX_HEAD: Final = 32 * 1024
FRAMING: Final = 5
CHUNKS: Final = 256 * 1024
# The headers that anybody asks for.
READ: Final = frozenset({b"content-type", b"content-encoding", b"content-length", b"expect"})


# In place of a request that is complete: whoever only keeps a connection open has no body held for it.
_NONE: Final = Request()


class RequestReader:
    """`begun` gets each request as soon as its head is there; its body is added as it comes. Where it raises Refused
    nothing can be read after that.

    A body takes its memory from `claim`. The methods `on_...` are the parser's.
    """

    def __init__(self, begun: Callable[[Request], object], claim: Callable[[], Claim]) -> None:
        self._begun = begun
        self._claim = claim
        self._parser = HttpRequestParser(self)
        self._request = _NONE
        self._in_body = False
        self._received = 0  # bytes since a request was complete, or somewhat less

    def feed(self, data: bytes) -> None:
        """Read on. Refused when nothing can be read after this; a request without its whole body is refused too."""
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserCallbackError as error:
            if isinstance(error.__context__, Refused):
                raise error.__context__ from None
            raise  # a fault of ours
        except HttpParserUpgrade:
            raise Refused(HTTPStatus.BAD_REQUEST, "only HTTP/1 is spoken here") from None
        except HttpParserError:
            refused = broken_off() if self._in_body else Refused(HTTPStatus.BAD_REQUEST, "this is not HTTP")
        else:
            size = self._request.size
            if self._received <= MAX_HEAD + size + FRAMING * min(size, CHUNKS):
                return
            refused = Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too large")
        if self._in_body:
            self._request.refuse(refused)
        raise refused

    def end(self) -> None:
        """Nothing more will be read: reader and parser hold each other no longer."""
        del self._parser

    def on_message_begin(self) -> None:
        """A request begins."""
        self._request = Request()

    def on_url(self, piece: bytes) -> None:
        """A piece of its target."""
        self._request.target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or after the body a trailer."""
        name = name.lower()
        if name in READ and not self._in_body:
            self._request.headers[name] = value

    def on_headers_complete(self) -> None:
        """Its head is there."""
        request = self._request
        request.started = monotonic()
        request.method = self._parser.get_method()
        request.keep_alive = self._parser.should_keep_alive()
        request.claim = self._claim()
        self._in_body = True
        self._begun(request)

    def on_body(self, piece: bytes) -> None:
        """A piece of its body."""
        request = self._request
        request.size += len(piece)
        if request.refused is None:
            try:
                self._make_room(request)
            except Refused as refused:
                request.refuse(refused)
            else:
                request.add(piece)

    def _make_room(self, request: Request) -> None:
        if request.size > MAX_BODY:
            raise too_large()
        request.hold(request.size)

    def on_message_complete(self) -> None:
        """All of it is there."""
        self._request.complete = True
        self._request = _NONE
        self._in_body = False
        self._received = 0
