"""A watch with a fake API server, a connection, a log and a fake clock."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec
import pytest

from tests.support.logs import Log
from tests.support.watch_api import Enough, FakeApi, Time, serving
from webhook.client.connection import Connection
from webhook.client.store import Kind, by_name
from webhook.client.watch import Watch


@dataclass(frozen=True)
class Thing:
    name: str
    size: int


class _Wire(msgspec.Struct):
    metadata: dict[str, str]
    size: int = 0
    hidden: bool = False


def project(data: msgspec.Raw) -> Thing | None:
    wire = msgspec.json.decode(data, type=_Wire)
    return None if wire.hidden else Thing(wire.metadata["name"], wire.size)


THINGS: Kind[str, Thing] = Kind("things", "/apis/example.com/v1/things", key=by_name, project=project, page=2)


@asynccontextmanager
async def watching(**options: Any) -> AsyncIterator["World"]:
    """A World whose watches end with the block. `options` are parameters of its connection."""
    async with serving(**options) as (api, connection):
        world = World(api, connection)
        yield world
        for task in world.tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, Enough):
                await task


@dataclass
class World:
    api: FakeApi
    connection: Connection
    time: Time = field(default_factory=Time)
    log: Log = field(default_factory=Log)
    uniform: Callable[[float, float], float] = lambda _low, high: high
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def watch(self, kind: Kind[Any, Any] = THINGS, connection: Any = None) -> Watch[Any, Any]:
        link = connection or self.connection
        time = self.time
        return Watch(kind, link, log=self.log, clock=time.clock, sleep=time.sleep, uniform=self.uniform)

    async def spend(self, watch: Watch[Any, Any], seconds: float = 600) -> None:
        """Run `watch` until its sleeps add up to `seconds`. Too many requests are an error."""
        self.time.end = self.time.now + seconds
        with pytest.raises(Enough):
            await self.start(watch)

    def before_sleeps(self, watch: Watch[Any, Any], action: Callable[[], None]) -> None:
        """Let `watch` run this action before each of its pauses."""

        async def sleep(seconds: float) -> None:
            action()
            await self.time.sleep(seconds)

        watch._sleep = sleep

    def start(self, watch: Watch[Any, Any]) -> asyncio.Task[Any]:
        self.api.task = asyncio.create_task(watch.run())
        self.tasks.append(self.api.task)
        return self.api.task

    def passing(self, watch: Watch[Any, Any], seconds: float) -> Callable[[], Awaitable[None]]:
        """A `meanwhile` for `stream`. It moves the clock by `seconds` while the watch is open."""

        async def passing() -> None:
            await self.until(lambda: watch._opened < inf)
            self.time.now += seconds

        return passing

    async def until(self, condition: Callable[[], object]) -> None:
        """Let other tasks run until `condition` holds. Raises an error of the watch."""
        while not condition():
            await asyncio.sleep(0.001)
            for task in self.tasks:
                if task.done():
                    await task
