"""The real service on loopback, in a thread with an event loop of uvloop, and clients that send bytes."""

import asyncio
import io
import json
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import uvloop

from webhook.server.log import make_log
from webhook.server.service import ServeSettings, Service, running
from webhook.server.telemetry import Telemetry

LOOPBACK = ("127.0.0.1", 0)


@dataclass
class Response:
    """An HTTP response. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def answer(self) -> dict[str, Any]:
        """The `response` in the AdmissionReview."""
        answer: dict[str, Any] = json.loads(self.body)["response"]
        return answer


class Connection:
    """A TLS connection that checks the service's certificate as the API server does."""

    def __init__(self, url: str, ca_pem: bytes) -> None:
        address = urlsplit(url)
        context = ssl.create_default_context(cadata=ca_pem.decode())
        self.socket = context.wrap_socket(
            socket.create_connection((address.hostname, address.port), timeout=30), server_hostname=address.hostname
        )
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # like Go
        self._received = self.socket.makefile("rb")

    def send(self, *pieces: bytes) -> None:
        self.socket.sendall(b"".join(pieces))

    def receive(self) -> Response:
        """The next response. Raises ConnectionError if the connection ends."""
        status = self._received.readline()
        if not status:
            raise ConnectionError("closed without a response")
        headers: dict[str, str] = {}
        while line := self._received.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return Response(int(status.split()[1]), headers, self._received.read(int(headers.get("content-length", 0))))

    def post(self, path: str, body: bytes, **headers: str) -> Response:
        """Send a review and wait for the response. `headers` override the usual headers."""
        self.send(head(path, **({"content_length": str(len(body))} | headers)), body)
        return self.receive()

    @property
    def closed(self) -> bool:
        """Waits until the service closes the connection (True) or sends data (False)."""
        try:
            return self._received.read(1) == b""
        except OSError:  # aborted
            return True

    def close(self) -> None:
        self._received.close()
        self.socket.close()


def head(path: str, *, method: str = "POST", version: str = "1.1", **headers: str) -> bytes:
    """The head of a request with the API server's headers. A header with an empty value is left out."""
    fields = {"host": "webhook", "content_type": "application/json", "accept": "application/json, */*"} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items() if value]
    return "\r\n".join([f"{method} {path} HTTP/{version}", *lines, "", ""]).encode()


class Live:
    """A running service, its log, and its event loop, which runs in a different thread."""

    def __init__(self, service: Service, log: io.BytesIO, loop: asyncio.AbstractEventLoop) -> None:
        self.service = service
        self.loop = loop
        self._log = log

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> Future[None]:
        """Run `coroutine` in the event loop of the service. Wait for the result with `.result(timeout)`."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def connect(self) -> Connection:
        assert self.service.ca_pem is not None
        return Connection(self.service.url, self.service.ca_pem)

    def post(self, path: str, body: bytes, **headers: str) -> Response:
        connection = self.connect()
        try:
            return connection.post(path, body, **headers)
        finally:
            connection.close()

    def ops(self, path: str) -> str:
        """The body of a 200 response of the operations port."""
        with urlopen(self.service.ops_url + path, timeout=30) as response:
            return str(response.read(), "utf-8")

    def metric(self, name: str, **labels: str) -> float:
        """The value of a metric, 0 if it does not exist."""
        return self.service.telemetry.registry.get_sample_value(f"mpijob_webhook_{name}", labels) or 0

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log_text().splitlines()]
        return [line for line in lines if event in {None, line["event"]}]

    def log_text(self) -> str:
        return self._log.getvalue().decode()

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until `condition()` is true in the event loop of the service."""

        async def poll() -> None:
            while not condition():  # noqa: ASYNC110 - there is no event for most conditions
                await asyncio.sleep(0.001)

        self.begin(poll()).result(30)


@contextmanager
def live(**settings: Any) -> Iterator[Live]:
    """A ready service with these settings, until the block ends."""
    log = io.BytesIO()
    defaults: dict[str, Any] = {"listen": LOOPBACK, "ops_listen": LOOPBACK, "drain_seconds": 0, "ssh_keys_ready": 0}
    options = ServeSettings(**(defaults | settings))
    started: list[Live] = []
    ready, end = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with running(options, Telemetry(make_log(log))) as service:
            started.append(Live(service, log, asyncio.get_running_loop()))
            ready.set()
            await end.wait()

    failures: list[BaseException] = []

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve())
        except BaseException as error:  # noqa: BLE001 - raised in the test's thread
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        ready.wait()
        if failures:
            raise failures[0]
        yield started[0]
    finally:
        if started:
            started[0].loop.call_soon_threadsafe(end.set)
        thread.join()
    if failures:
        raise failures[0]
