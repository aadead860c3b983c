"""Serves the page and its verdicts on loopback.

Other users of the machine can connect too, so the path of the address contains a secret. Requests with a foreign Host
or Origin header are rejected: scripts of other sites could send them.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from webhook.parts.playground import verdicts
from webhook.parts.playground.limits import MAX_BODY_BYTES
from webhook.parts.playground.page_data import page_data

HOST: Final = "127.0.0.1"
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".txt": "text/plain"}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NotBuilt(Exception):
    """The files of the page do not exist."""


@dataclass(slots=True)
class Playground:
    """The server; `start` starts it."""

    folder: Path
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    port: int = 0
    _files: dict[str, bytes] = field(default_factory=dict)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def start(self) -> web.AppRunner:
        """Starts the server; NotBuilt if `folder` has no page, OSError if the port is taken."""
        suffixes = {*_TYPES}
        self._files = {path.name: path.read_bytes() for path in self.folder.glob("*") if path.suffix in suffixes}
        if "index.html" not in self._files:
            raise NotBuilt(f"the page is not in {self.folder}")
        self._files["backend.js"] = self._files["loopback.js"]
        self._files["data.json"] = json.dumps(page_data()).encode()
        runner = web.AppRunner(self._application(), access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, HOST, self.port)
            await site.start()
        except OSError:
            await runner.cleanup()
            raise
        self.port = runner.addresses[0][1]
        return runner

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.secret}/"

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY_BYTES)
        application.add_routes(
            [
                web.post(f"/{self.secret}/api/check", self._check),
                web.get(f"/{self.secret}/{{name:[a-z.]*}}", self._file),
            ]
        )
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        hosts = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        origin = request.headers.get("Origin")
        if request.headers.get("Host") not in hosts:
            response: web.StreamResponse = web.Response(status=421, text="this is not the requested host\n")
        elif origin is not None and origin not in {f"http://{host}" for host in hosts}:
            response = web.Response(status=403, text="only the page itself may send requests\n")
        elif request.method == "POST" and request.content_type != "application/json":
            response = web.Response(status=415, text="requests must be JSON\n")
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = web.Response(status=error.status, text=f"{error.reason}\n")
        response.headers.update(_HEADERS)
        return response

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"] or "index.html"
        content = self._files.get(name)
        if content is None:
            raise web.HTTPNotFound
        kind = _TYPES.get(Path(name).suffix, "application/json")
        return web.Response(body=content, content_type=kind, charset="utf-8")

    async def _check(self, request: web.Request) -> web.Response:
        try:
            # The charset of the Content-Type is ignored: JSON is UTF-8.
            question: Any = json.loads(await request.read())
        except (ValueError, RecursionError):
            raise web.HTTPBadRequest from None
        if not isinstance(question, Mapping):
            raise web.HTTPBadRequest
        async with self._one_at_a_time:
            return web.json_response(await asyncio.to_thread(verdicts.answer, question))
