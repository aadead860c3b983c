"""An API server with scripted responses, and a clock that moves only when a watch sleeps."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import RawTestServer
from kubernetes.aio.client import ApiClient, Configuration

from webhook.client.connection import Connection

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
STORM = 300
OVER = web.RequestKey("over", asyncio.Event)


class Enough(BaseException):
    """Ends a watch at the end of the fake time. It is a BaseException, because a watch survives every Exception."""


@dataclass
class Time:
    """A clock that only `sleep` and tests move. After `end`, `sleep` raises Enough."""

    now: float = 1000.0
    end: float = 10_000.0
    sleeps: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        if self.now >= self.end:
            raise Enough
        await asyncio.sleep(0)


class FakeApi:
    """Answers list requests from `lists` and watch requests from `watches`, in order. The last answer is repeated."""

    def __init__(self) -> None:
        self.lists: list[Handler] = [page()]
        self.watches: list[Handler] = [stream()]
        self.requests: list[web.BaseRequest] = []
        self.over = asyncio.Event()
        self.task: asyncio.Task[Any] | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        if len(self.requests) > STORM and self.task is not None:
            self.task.cancel("too many requests")
        answers = self.watches if "watch" in request.query else self.lists
        request[OVER] = self.over
        return await (answers.pop(0) if len(answers) > 1 else answers[0])(request)

    def queries(self, *, watch: bool) -> list[dict[str, str]]:
        """The query parameters of each list request, or of each watch request."""
        return [dict(request.query) for request in self.requests if ("watch" in request.query) == watch]


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[tuple[FakeApi, Connection]]:
    """A fake API server, and a connection to it with the real client. `options` are parameters of the connection."""
    api = FakeApi()
    async with RawTestServer(api.handle) as server, client(str(server.make_url("")).rstrip("/")) as real:
        try:
            yield api, Connection(real, **options)
        finally:
            api.over.set()
    await asyncio.sleep(0.01)  # the last accepted connection is closed in the next turns of the loop


@asynccontextmanager
async def client(url: str) -> AsyncIterator[Any]:
    configuration = Configuration(host=url)
    async with ApiClient(configuration=configuration) as real:
        yield real


def thing(name: str, version: int = 1, namespace: str = "", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": str(version)}, **fields}


def event(kind: str, name: str, version: int = 1, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "object": thing(name, version, **fields)}


def bookmark(version: int) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


def error(code: int, message: str = "", **status: Any) -> dict[str, Any]:
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "message": message, **status}}


def page(*items: dict[str, Any], version: str = "7", token: str = "") -> Handler:
    metadata = {"resourceVersion": version} | ({"continue": token} if token else {})
    return answer(json.dumps({"kind": "List", "metadata": metadata, "items": items}))


def answer(
    text: str | bytes = "", *, status: int = 200, content_type: str = "application/json", **headers: str
) -> Handler:
    body = text.encode() if isinstance(text, str) else text

    async def respond(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=body, content_type=content_type, headers=headers)

    return respond


def refused(status: int, message: str = "", **headers: str) -> Handler:
    return answer(json.dumps({"kind": "Status", "code": status, "message": message}), status=status, **headers)


def stream(
    *lines: dict[str, Any] | bytes,
    then: str = "hold",
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> Handler:
    """Writes the lines of a watch and awaits `meanwhile`. Then the watch stays open ("hold"), aborts or ends."""

    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for line in lines:
            await response.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        if meanwhile is not None:
            await meanwhile()
        if then == "hold":
            await request[OVER].wait()
        elif then == "abort":
            await asyncio.sleep(0.01)  # the written lines must arrive first
            assert request.transport is not None
            request.transport.abort()
        return response

    return respond


async def until(condition: Callable[[], object]) -> None:
    """Let other tasks run until `condition` holds."""
    while not condition():  # noqa: ASYNC110 - there is no event for the condition
        await asyncio.sleep(0.001)
