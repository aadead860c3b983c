"""HTTP around a review: which requests are refused unread, how a body is read within its limits, and the reply."""

import asyncio
import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from time import monotonic
from urllib.parse import parse_qs

from aiohttp import hdrs, web

from webhook.admission.pipelines import DeadlineExceeded, Hook
from webhook.server.memory import Claim

# Two objects of 3 MB and what goes with them: controller-runtime's limit too (`pkg/webhook/admission/http.go`).
MAX_BODY = 7 * 1024**2
# Of what a refusal quotes.
MAX_DETAIL = 1000
JSON = "application/json"
HOOKS: dict[str, Hook] = {
    "/mutate-mpijob": "mutate",
    "/validate-mpijob": "validate",
    "/mutate-ssh-secret": "ssh-keys",
    "/validate-policy": "policy",
}
# How long a client may take to read its reply.
SEND_SECONDS = 10.0
# Longer than any that Go writes, and short enough for the pattern's backtracking.
MAX_LENGTH = 32
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Target:
    """What a request line asks for."""

    hook: Hook | None
    """None for a path that belongs to no hook."""
    timeout: float | None
    """The client's, in seconds; None when it names none that can be read."""


# The API server sends the same few request lines over and over.
@lru_cache(maxsize=64)
def parse(raw: str) -> Target:
    """The target of a request line as it was sent, such as `/mutate-mpijob?timeout=5s`."""
    path, _, query = raw.partition("?")
    values = parse_qs(query).get("timeout", [])
    return Target(hook=HOOKS.get(path), timeout=_duration(values[0]) if values else None)


def _duration(text: str) -> float | None:
    """`text` in seconds; None for anything that is not a duration above zero."""
    if len(text) > MAX_LENGTH or not _WHOLE.fullmatch(text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text)) or None


class Refused(Exception):
    """The request gets no decision. `reason` is ours and is logged; `detail` may quote the client and is not logged.

    `shed` when there are too many of its like: then it is counted and not logged, for that would add to the load.
    """

    def __init__(self, status: HTTPStatus, reason: str, detail: str = "", *, shed: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.detail = detail[:MAX_DETAIL]
        self.shed = shed


class Reply(web.StreamResponse):
    """An answer, written in one piece.

    Headers, which hardly vary here, would otherwise take a quarter of aiohttp's time for each request.
    """

    def __init__(
        self,
        body: bytes,
        *,
        keep_alive: bool,
        status: HTTPStatus = HTTPStatus.OK,
        content_type: bytes = JSON.encode(),
        headers: bytes = b"",
    ) -> None:
        """`headers` are more of them, each with its end of line."""
        super().__init__(status=status)
        connection = b"" if keep_alive else b"Connection: close\r\n"
        self._wire = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b%b\r\n%b" % (
            status,
            status.phrase.encode(),
            content_type,
            len(body),
            headers,
            connection,
            body,
        )
        self._keep_alive = keep_alive

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send it all; a client that does not take it in time is cut off."""
        transport = request.transport
        if transport is None:
            return
        transport.write(self._wire)
        if request.protocol.writing_paused:
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await request.writer.drain()
            except TimeoutError:
                transport.abort()

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: all has been sent."""


def expect_client(request: web.BaseRequest, names: Set[str]) -> None:
    """Refused unless the client's certificate is for one of `names`."""
    certificate = request.get_extra_info("peercert") or {}
    subject = {value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"}
    subject |= {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
    if not subject & names:
        raise Refused(HTTPStatus.FORBIDDEN, "the client certificate is for somebody else", ", ".join(sorted(subject)))


def expect_review(request: web.BaseRequest, asked: Target) -> Hook:
    """The hook of a request that could be a review; Refused for any other."""
    if asked.hook is None:
        raise Refused(HTTPStatus.NOT_FOUND, "there is no such path here")
    if request.method != hdrs.METH_POST:
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "reviews are sent with POST")
    kind = request.headers.get(hdrs.CONTENT_TYPE, "")
    if kind != JSON and kind.partition(";")[0].strip().lower() != JSON:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type must be {JSON}")
    if hdrs.CONTENT_ENCODING in request.headers:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed")
    return asked.hook


async def read_body(request: web.BaseRequest, deadline: float, claim: Claim) -> bytes:
    """The whole body; Refused when it is too large or broken, DeadlineExceeded when it does not arrive in time.

    It counts in `claim` as far as it has arrived: NoRoom when that is too much beside the others.
    """
    content = request.content
    if content.is_eof():  # it came with the headers, as small bodies do
        body = content.read_nowait()
        claim.grow(len(body))
        return body
    if (request.content_length or 0) > MAX_BODY:
        raise _too_large()
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(deadline - monotonic()):
            while chunk := await content.readany():
                size += len(chunk)
                if size > MAX_BODY:
                    raise _too_large()
                claim.grow(size)
                chunks.append(chunk)
    except TimeoutError:
        raise DeadlineExceeded("the body") from None
    except (web.RequestPayloadError, ConnectionError):
        raise Refused(HTTPStatus.BAD_REQUEST, "the body broke off") from None
    return b"".join(chunks)


def _too_large() -> Refused:
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {MAX_BODY} bytes")
