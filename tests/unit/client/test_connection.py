"""The connection itself: sockets, time limits, TLS and what is no HTTP."""

import asyncio
import socket
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import TCPConnector, web
from aiohttp.test_utils import RawTestServer

from certs.authority import Authority
from tests.support.watch_api import client, serving, until
from webhook.client import connection
from webhook.client.connection import KEEP_ALIVE, Connection
from webhook.client.wire import FaultReason, WatchFault


async def test_the_kernel_looks_after_an_idle_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    def factory(address: Any) -> socket.socket:
        made.append(socket.socket(family=address[0], type=address[1], proto=address[2]))
        return made[-1]

    async with serving() as (_, link):
        link._api.configuration.client_session_kwargs = {"connector": TCPConnector(socket_factory=factory)}
        async with link.watch("/things?watch=true", 250):
            assert len(made) == 1
            assert made[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            for name, value in KEEP_ALIVE.items():
                assert made[0].getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value
        await link._api.configuration.client_session_kwargs["connector"].close()


async def test_a_watch_that_outlives_its_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_answers_that_are_not_http_are_garbage() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server, client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as api:
        with pytest.raises(WatchFault) as caught:
            await Connection(api).page("/things")
    assert caught.value.reason is FaultReason.GARBAGE


async def test_a_watch_that_is_left_gives_its_connection_up() -> None:
    async with serving() as (api, link):
        async with link.watch("/things?watch=true", 250):
            (request,) = api.requests
            assert request.transport is not None
            assert not request.transport.is_closing()
        await until(lambda: request.transport is None or request.transport.is_closing())


async def test_a_server_with_a_foreign_certificate_is_unreachable(tmp_path: Path) -> None:
    pair = Authority("stranger", lifetime=timedelta(days=1)).issue(["127.0.0.1"], lifetime=timedelta(days=1))
    (tmp_path / "tls.crt").write_bytes(pair.certificate_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")

    async def never(_: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError("no request may get through")

    server = RawTestServer(never)
    await server.start_server(ssl=context)
    try:
        async with client(f"https://127.0.0.1:{server.port}") as api:
            with pytest.raises(WatchFault) as caught:
                await Connection(api).page("/things")
    finally:
        await server.close()
    assert (caught.value.reason, str(caught.value)) == (
        FaultReason.UNREACHABLE,
        "unreachable: its certificate does not verify",
    )


async def test_the_token_is_sent() -> None:
    async with serving() as (api, link):
        link._api.configuration.api_key["BearerToken"] = "bearer abc"
        await link.page("/things?limit=1")
        assert api.requests[0].headers["Authorization"] == "bearer abc"
