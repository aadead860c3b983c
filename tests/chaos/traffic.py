"""Sends reviews to all replicas at a steady rate, and compares each reply with the expected reply."""

import asyncio
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

import aiohttp
import uvloop

from tests.chaos.cases import Case
from tests.support.installation.balancer import Backend
from tests.support.installation.deployment import HOST

PATIENCE = 300
"""Seconds for which a review is retried, longer than any fault: a review may get no verdict (504) during a fault."""
MOST_AT_ONCE = 2000
CONNECTIONS = 16
"""Persistent connections to each replica: enough for the load, and few enough to make a leak visible.

A review that queries the cluster has a separate connection, because it must not delay other reviews while the cluster
is unavailable.
"""
HEADERS = {"Content-Type": "application/json"}


class Refusal(OSError):
    """There is no verdict. The message is the HTTP status and the body, or the name of the original exception."""


@dataclass
class Tally:
    answered: int = 0
    """Reviews that got a verdict."""
    wrong: list[str] = field(default_factory=list)
    """Differences between expected and actual replies."""
    lost: list[str] = field(default_factory=list)
    """Reviews without a reply, with the last error."""


@dataclass
class Traffic:
    """Sends `rate` reviews a second until the block ends."""

    backends: Callable[[], Sequence[Backend]]
    """The replicas that run now."""
    ca: bytes
    """The CA of the replicas' certificates (PEM)."""
    cases: Sequence[Case]
    rate: float
    seed: int = 0
    tally: Tally = field(default_factory=Tally)

    def __enter__(self) -> Self:
        self._rng = Random(self.seed)
        self._context = ssl.create_default_context(cadata=self.ca.decode())
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._drive)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def ask(self, backend: Backend, case: Case) -> bytes:
        """The reply of one replica on a new connection. Raises OSError if there is no reply."""
        with (
            closing(socket.create_connection(("127.0.0.1", backend.port), timeout=30)) as plain,
            closing(http.client.HTTPSConnection("127.0.0.1", backend.port)) as connection,
        ):
            connection.sock = self._context.wrap_socket(plain, server_hostname=HOST)
            try:
                connection.request("POST", case.path, case.body, HEADERS)
                response = connection.getresponse()
                reply = response.read()
            except http.client.HTTPException as error:
                raise Refusal(type(error).__name__) from None
        return _verdict(response.status, reply)

    def _drive(self) -> None:
        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        runner.run(self._run())
        with suppress(OSError):  # libuv reports EBUSY: a fault has left a connection half open
            runner.close()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        under_way: set[asyncio.Task[None]] = set()
        kept = aiohttp.TCPConnector(limit=0, limit_per_host=CONNECTIONS, ssl=self._context)
        closed = aiohttp.TCPConnector(limit=0, force_close=True, ssl=self._context)
        how: Any = {"timeout": aiohttp.ClientTimeout(total=30), "headers": HEADERS}
        async with (
            aiohttp.ClientSession(connector=kept, **how) as self._quick,
            aiohttp.ClientSession(connector=closed, **how) as self._asking,
        ):
            self._ready.set()
            due = self._loop.time()
            while not self._over.is_set():
                due += 1 / self.rate
                await asyncio.sleep(max(0, due - self._loop.time()))
                if len(under_way) < MOST_AT_ONCE:
                    task = asyncio.create_task(self._settle(self._rng.choice(self.cases)))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
            await asyncio.gather(*under_way)

    async def _settle(self, case: Case) -> None:
        """Send the review until a replica replies."""
        deadline = self._loop.time() + PATIENCE
        refusal = ""
        while self._loop.time() < deadline:
            try:
                reply = await self._send(case)
            except (aiohttp.ClientError, OSError, IndexError) as error:  # IndexError: there is no replica
                refusal = str(error) if isinstance(error, Refusal) else type(error).__name__
                await asyncio.sleep(0.1)
                continue
            self.tally.answered += 1
            if reply != case.reply:
                self.tally.wrong.append(difference(case, reply))
            return
        self.tally.lost.append(f"{case.name}: {refusal}")

    async def _send(self, case: Case) -> bytes:
        url = f"https://127.0.0.1:{self._rng.choice(self.backends()).port}{case.path}"
        session = self._asking if case.asks else self._quick
        async with session.post(url, data=case.body, server_hostname=HOST) as response:
            return _verdict(response.status, await response.read())


def difference(case: Case, reply: bytes) -> str:
    """Both replies, for the developer who looks for the error."""
    return f"{case.name}\n  offline {case.reply.decode()}\n  service {reply.decode()}"


def _verdict(status: int, reply: bytes) -> bytes:
    if status != http.client.OK:
        raise Refusal(f"{status} {reply[:200].decode(errors='replace').strip()}")
    return reply
