"""Sends list and watch requests, over the official client's connections. Every failure raises a WatchFault."""

import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import aiohttp
from aiohttp.http_exceptions import BadHttpMessage
from msgspec import Raw

from webhook.client import wire
from webhook.client.limits import MAX_CONNECT_SECONDS, MAX_ERROR_BYTES, MAX_LINE_BYTES, MAX_PAGE_BYTES, MAX_PAGE_SECONDS
from webhook.client.wire import FaultReason, Page, WatchFault, status_fault

JSON = "application/json"
# The Accept header for the metadata of objects. `%s` is "List" for a page of a list, and empty for a watch.
METADATA = f"{JSON};as=PartialObjectMetadata%s;g=meta.k8s.io;v=v1"

OVERDUE = 15  # seconds that a watch may stay open longer than requested
# Seconds of silence after which a watch ends. An API server sends a bookmark about every 60 s, except while nothing in
# the cluster changes.
INACTIVITY = 90.0
# TCP sends a probe after 30 s of silence, and then every 10 s. Without probes, load balancers might close idle watches.
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


class Connection:
    """Reads from one API server through `api`, the official client's ApiClient. The caller must close `api`.

    `renew` reads the credentials again: the official client does not always notice an expired token. A watch ends with
    a WatchFault after `inactivity` seconds of silence.
    """

    def __init__(
        self, api: Any, *, renew: Callable[[], Awaitable[None]] | None = None, inactivity: float = INACTIVITY
    ) -> None:
        self._api = api
        self._renew = renew
        self._inactivity = inactivity

    async def renew(self) -> None:
        if self._renew is not None:
            await self._renew()

    async def page(self, target: str, *, metadata_only: bool = False) -> bytes:
        """The JSON answer to a GET of `target`, a path with its query; WatchFault without an answer."""
        limits = aiohttp.ClientTimeout(total=MAX_PAGE_SECONDS, sock_connect=MAX_CONNECT_SECONDS)
        async with self._get(target, METADATA % "List" if metadata_only else JSON, limits) as response:
            chunks = []
            size = 0
            async for chunk in response.content.iter_any():
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_PAGE_BYTES:
                    raise WatchFault(FaultReason.TOO_LARGE, f"a page of more than {MAX_PAGE_BYTES >> 20} MiB")
            return b"".join(chunks)

    async def list_page(self, target: str, *, metadata_only: bool = False) -> Page[Raw]:
        """The answer to a GET of `target` as a page of a list; WatchFault without an answer."""
        page = wire.decode(wire.pages, await self.page(target, metadata_only=metadata_only))
        if not page.metadata.resource_version:
            raise WatchFault(FaultReason.GARBAGE, "a list without version or end")
        return page

    @asynccontextmanager
    async def watch(
        self, target: str, seconds: float, *, metadata_only: bool = False
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of the answer to a GET of `target`. The API server ends the answer after `seconds`.

        The `async with` block starts when the API server has accepted the watch. WatchFault if the connection fails.
        """
        longest = seconds + OVERDUE
        silence = min(self._inactivity, longest)
        limits = aiohttp.ClientTimeout(total=longest, sock_connect=MAX_CONNECT_SECONDS, sock_read=silence)
        accept = METADATA % "" if metadata_only else JSON
        async with self._get(target, accept, limits) as response, aclosing(_lines(response)) as lines:
            _keep_alive(response)
            yield lines

    @asynccontextmanager
    async def _get(
        self, target: str, accept: str, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            prepared = await self._api.param_serialize(
                method="GET",
                resource_path=target,
                header_params={"Accept": accept},
                auth_settings=["BearerToken"],
            )
            response: aiohttp.ClientResponse = (await self._api.call_api(*prepared, _request_timeout=limits)).response
            try:
                if response.status != 200:
                    data = await response.content.read(MAX_ERROR_BYTES)
                    raise status_fault(data, code=response.status, retry_after=_retry_after(response))
                if response.content_type != JSON:
                    raise WatchFault(FaultReason.GARBAGE, f"an answer of type {response.content_type[:100]}")
                yield response
            finally:
                _give_up(response)
        except aiohttp.ConnectionTimeoutError:
            raise WatchFault(FaultReason.UNREACHABLE, "no connection in time") from None
        except TimeoutError:
            raise WatchFault(FaultReason.STALLED, "no answer in time") from None
        except aiohttp.ClientConnectorError as error:
            raise WatchFault(FaultReason.UNREACHABLE, _problem(error)) from None
        except (BadHttpMessage, aiohttp.ClientResponseError) as error:
            raise WatchFault(FaultReason.GARBAGE, type(error).__name__) from None
        except (aiohttp.ClientError, OSError) as error:
            raise WatchFault(FaultReason.CUT, _problem(error)) from None


async def _lines(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    while line := await response.content.readuntil(b"\n", max_size=MAX_LINE_BYTES):
        if not line.endswith(b"\n"):
            raise WatchFault(FaultReason.CUT, "in the middle of an event")
        yield line


def _give_up(response: aiohttp.ClientResponse) -> None:
    # Parts of the answer may be unread. A regular TLS shutdown could take longer than the event loop runs.
    if response.connection and response.connection.transport:
        response.connection.transport.abort()
    response.close()


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    transport = response.connection and response.connection.transport
    raw_socket = transport and transport.get_extra_info("socket")
    if raw_socket:
        raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEP_ALIVE.items():
            if (option := getattr(socket, name, None)) is not None:  # macOS has different names
                raw_socket.setsockopt(socket.IPPROTO_TCP, option, value)


def _retry_after(response: aiohttp.ClientResponse) -> float:
    # The header may also have a date, but API servers send seconds.
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _problem(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate does not verify"
    return ((error.strerror if isinstance(error, OSError) else None) or type(error).__name__)[:256]
