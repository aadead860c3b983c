import asyncio
import socket
from datetime import timedelta

import pytest

from certs import peer
from certs.authority import Authority
from certs.peer import PeerError, fetch_chain
from certs.pem import chains_to, load_certificates
from certs.serving import ServingCertificate
from tests.support.tls import listener

DAY = timedelta(days=1)
CA, OTHER = (Authority(name, lifetime=9 * DAY) for name in ("test CA", "other CA"))
PAIR = CA.issue(["webhook.training.svc"], lifetime=DAY)
CERTIFICATE = ServingCertificate(PAIR.certificate_pem, PAIR.key_pem)


async def test_served_certificate_is_fetched_without_verification():
    async with listener(CERTIFICATE) as port:
        chain = await fetch_chain("127.0.0.1", port, server_name="unknown.example")
        assert chain[0] == (await fetch_chain("127.0.0.1", port))[0]
    assert chain == load_certificates(PAIR.certificate_pem)
    assert chains_to(chain, [CA.certificate])
    assert not chains_to(chain, [OTHER.certificate])


async def test_unreachable_or_silent_server_is_an_error(monkeypatch):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        with pytest.raises(PeerError, match=f"^cannot reach 127.0.0.1:{port}: "):
            await fetch_chain("127.0.0.1", port)
        silent.listen()
        monkeypatch.setattr(peer, "MAX_PEER_SECONDS", 0.05)
        with pytest.raises(PeerError, match=f"^no answer from 127.0.0.1:{port} within 0.05 s$"):
            await fetch_chain("127.0.0.1", port)


async def test_server_without_tls_is_an_error():
    async def plain(reader, writer):
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(PeerError, match=f"^no TLS at 127.0.0.1:{port}: "):
            await fetch_chain("127.0.0.1", port)
