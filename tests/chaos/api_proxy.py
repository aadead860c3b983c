"""A proxy between the service and its API server. It makes reads of selected kinds fail.

The service talks to the proxy over plain HTTP without credentials. The proxy has the credentials.
"""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import aiohttp
from aiohttp import web
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_kube_config

from tests.support.loopback import served

HOP_BY_HOP = {"host", "connection", "transfer-encoding", "content-length", "authorization"}
GARBAGE = b'{"type":"ADDED","object":{"metadata":\n\x00\xff}\n'


class Trouble(Enum):
    """A fault in the lists and watches of a kind."""

    BROKEN = "broken"
    """The answer is a 500."""
    GARBAGE = "garbage"
    """The answer is not JSON."""
    HANG = "hang"
    """The connection stays open without an answer."""


@dataclass
class ApiProxy:
    """Forwards all requests. Reads of the kinds in `troubles` (plural names) get a fault."""

    kubeconfig: Path
    """A kubeconfig for the API server. The proxy acts as the user of this kubeconfig."""
    troubles: dict[str, Trouble] = field(default_factory=dict)
    _open: dict[asyncio.Task[object], str] = field(default_factory=dict)
    _loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def running(self) -> Iterator[str]:
        """Yields the URL of the proxy, which runs until the block ends."""
        app = web.Application(client_max_size=16 * 2**20)
        app.cleanup_ctx.append(self._client)
        app.router.add_route("*", "/{path:.*}", self._handle)
        with served(app) as url:
            yield url

    @contextmanager
    def trouble(self, plurals: list[str], what: Trouble) -> Iterator[None]:
        """Requests for these kinds fail until the block ends. Responses in progress are aborted."""
        self.troubles |= dict.fromkeys(plurals, what)
        self._abort_open(plurals)
        try:
            yield
        finally:
            for plural in plurals:
                self.troubles.pop(plural, None)
            self._abort_open(plurals)

    def _abort_open(self, plurals: list[str]) -> None:
        done = threading.Event()

        def cancel() -> None:
            for task, plural in list(self._open.items()):
                if plural in plurals:
                    task.cancel()
            done.set()

        assert self._loop is not None, "the proxy must run"
        self._loop.call_soon_threadsafe(cancel)
        done.wait()

    async def _client(self, _: web.Application) -> AsyncIterator[None]:
        configuration = Configuration()
        await load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(self.kubeconfig), client_configuration=configuration, persist_config=False
        )
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
        self._loop = asyncio.get_running_loop()
        self._server = configuration.host
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as self._session:
            yield

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.rsplit("/", 1)[-1] if request.method == "GET" else ""
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = plural
        try:
            trouble = self.troubles.get(plural)
            if trouble is Trouble.BROKEN:
                body = {"kind": "Status", "status": "Failure", "code": 500, "message": "conversion webhook failed"}
                return web.json_response(body, status=500)
            if trouble is Trouble.HANG:
                await asyncio.Event().wait()
            return await self._pass_on(request, trouble)
        except (asyncio.CancelledError, aiohttp.ClientError, OSError):
            _abort(request)
            return web.Response()
        finally:
            del self._open[task]

    async def _pass_on(self, request: web.Request, trouble: Trouble | None) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        body = await request.read()
        async with self._session.request(
            request.method, self._server + request.path_qs, headers=headers, data=body, allow_redirects=False
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            if trouble is Trouble.GARBAGE:
                await response.write(GARBAGE)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            with suppress(ConnectionError):
                await response.write_eof()
            return response


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
