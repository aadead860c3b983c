"""Connections: sockets, time limits, TLS and invalid HTTP."""

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import TCPConnector, web
from aiohttp.test_utils import RawTestServer
from kubernetes.aio.client import ApiClient, Configuration

from certs.authority import Authority
from tests.support.watch_api import client, serving, until
from webhook.client import connection
from webhook.client.connection import KEEP_ALIVE, Connection
from webhook.client.wire import FaultReason, WatchFault


async def test_idle_watch_has_tcp_keep_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    sockets: list[socket.socket] = []

    def factory(address: Any) -> socket.socket:
        sockets.append(socket.socket(family=address[0], type=address[1], proto=address[2]))
        return sockets[-1]

    async with serving() as (_, link):
        link._api.configuration.client_session_kwargs = {"connector": TCPConnector(socket_factory=factory)}
        async with link.watch("/things?watch=true", 250):
            assert len(sockets) == 1
            assert sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            for name, value in KEEP_ALIVE.items():
                assert sockets[0].getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value
        await link._api.configuration.client_session_kwargs["connector"].close()


async def test_watch_that_exceeds_its_time_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "OVERDUE", 0.2 - 1)

    async def drip(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.02)

    async with serving() as (api, link):
        api.watches = [drip]
        with pytest.raises(WatchFault) as caught:
            async with link.watch("/things?watch=true", 1) as lines:
                assert [line async for line in lines]
    assert caught.value.reason is FaultReason.STALLED


async def test_answer_that_is_not_http_has_the_fault_reason_garbage() -> None:
    over = asyncio.Event()  # a connection that is still open when the event loop ends causes a warning in the next test

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        over.set()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server, client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as api:
        with pytest.raises(WatchFault) as caught:
            await Connection(api).page("/things")
        await over.wait()
    assert caught.value.reason is FaultReason.GARBAGE


async def test_connection_of_a_closed_watch_is_closed() -> None:
    async with serving() as (api, link):
        async with link.watch("/things?watch=true", 250):
            (request,) = api.requests
            assert request.transport is not None
            assert not request.transport.is_closing()
        await until(lambda: request.transport is None or request.transport.is_closing())


def untrusted(folder: Path) -> ssl.SSLContext:
    """The TLS context of a server with an untrusted certificate."""
    pair = Authority("stranger", lifetime=timedelta(days=1)).issue(["127.0.0.1"], lifetime=timedelta(days=1))
    (folder / "tls.pem").write_bytes(pair.key_pem + pair.certificate_pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.pem")
    return context


def test_closed_watch_does_not_wait_for_the_tls_shutdown(tmp_path: Path) -> None:
    """If it waited, the TLS connection would still be open at the end of the event loop, with a ResourceWarning."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def leave(port: int) -> None:
        configuration = Configuration(host=f"https://127.0.0.1:{port}")
        configuration.verify_ssl = False
        async with ApiClient(configuration=configuration) as api, Connection(api).watch("/things?watch=true", 250):
            pass

    def answer(listener: socket.socket, over: threading.Event) -> None:
        with untrusted(tmp_path).wrap_socket(listener.accept()[0], server_side=True) as peer:
            peer.recv(4096)
            peer.sendall(head)
            over.wait()

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        answering = pool.submit(answer, listener, over := threading.Event())
        with warnings.catch_warnings(record=True) as recorded:
            warnings.simplefilter("always")
            asyncio.run(leave(listener.getsockname()[1]))
            gc.collect()
        over.set()
        answering.result()
    assert [str(warning.message) for warning in recorded if warning.category is ResourceWarning] == []


async def test_server_with_an_untrusted_certificate_is_unreachable(tmp_path: Path) -> None:
    context = untrusted(tmp_path)

    async def never(_: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError("the server must not get a request")

    server = RawTestServer(never)
    await server.start_server(ssl=context)
    try:
        async with client(f"https://127.0.0.1:{server.port}") as api:
            with pytest.raises(WatchFault) as caught:
                await Connection(api).page("/things")
    finally:
        await server.close()
    assert caught.value.reason is FaultReason.UNREACHABLE
    assert str(caught.value) == "unreachable: its certificate does not verify"


@pytest.mark.parametrize("talks", ["page", "watch"])
async def test_server_that_does_not_answer_is_unreachable(monkeypatch: pytest.MonkeyPatch, talks: str) -> None:
    """The kernel of a frozen server still accepts connections."""
    monkeypatch.setattr(connection, "MAX_CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        async with client(f"https://127.0.0.1:{frozen.getsockname()[1]}") as api:
            link = Connection(api)
            request = link.page("/things") if talks == "page" else link.watch("/things?watch=true", 250).__aenter__()
            with pytest.raises(WatchFault) as caught:
                await request
    assert (caught.value.reason, str(caught.value)) == (FaultReason.UNREACHABLE, "unreachable: no connection in time")


async def test_the_token_is_sent() -> None:
    async with serving() as (api, link):
        link._api.configuration.api_key["BearerToken"] = "bearer abc"
        await link.page("/things?limit=1")
        assert api.requests[0].headers["Authorization"] == "bearer abc"
