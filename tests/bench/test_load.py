"""Tests of the load generator with a server whose replies are known."""

import asyncio
import json
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from certs.authority import Authority
from tests.controlplane.assets import assets

LOAD = assets().load
REVIEWS = [{"request": {"uid": f"uid-{number}"}} for number in range(3)]
Answer = Callable[[dict[str, Any]], bytes]


def reply(body: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def allow(review: dict[str, Any]) -> bytes:
    return reply(json.dumps({"uid": review["request"]["uid"], "allowed": True}, separators=(",", ":")))


class Server:
    """Replies to each request with `answer`, and records the requests."""

    def __init__(self, answer: Answer, folder: Path) -> None:
        self.answer = answer
        self.heads: list[str] = []
        self.uids: list[str] = []
        self.connections = 0
        self._folder = folder

    async def load(self, **flags: object) -> dict[str, Any]:
        """The output of the load generator for this server."""
        authority = Authority("test", lifetime=timedelta(days=1))
        pair = authority.issue(["127.0.0.1"], lifetime=timedelta(days=1))
        chain, ca, bodies = (self._folder / name for name in ("chain.pem", "ca.pem", "bodies"))
        chain.write_bytes(pair.certificate_pem + pair.key_pem)
        ca.write_bytes(authority.certificate_pem)
        bodies.write_text("".join(json.dumps(review) + "\n" for review in REVIEWS))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=context)
        host, port = server.sockets[0].getsockname()
        async with server:
            return await run(address=f"{host}:{port}", ca=ca, bodies=bodies, path="/hook?timeout=10s", **flags)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().partition("content-length: ")[2].split("\r\n")[0])
                review = json.loads(await reader.readexactly(length))
                self.heads.append(head)
                self.uids.append(review["request"]["uid"])
                answer = self.answer(review)
                writer.write(answer)
                await writer.drain()
                if not answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def run(**flags: object) -> dict[str, Any]:
    few = {"connections": 2, "seconds": 0.2, "warmup": 0.1}
    arguments = [f"-{name}={value}" for name, value in (few | flags).items()]
    process = await asyncio.create_subprocess_exec(
        LOAD, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode:
        raise RuntimeError(err.decode())
    printed: dict[str, Any] = json.loads(out)
    return printed


async def test_correct_replies_are_counted(tmp_path: Path) -> None:
    server = Server(allow, tmp_path)
    result = await server.load()
    assert result["requests"] > 0
    assert result["errors"] == 0
    assert result["sent"] == len(server.uids)  # including the requests of the warm-up
    assert result["rps"] == pytest.approx(result["requests"] / result["seconds"])
    assert 0 < result["p50"] <= result["p90"] <= result["p99"] <= result["p999"] <= result["max"]
    assert server.connections == 2  # connections are reused
    assert set(server.uids) == {"uid-0", "uid-1", "uid-2"}  # bodies are used in turn
    assert server.heads[0].startswith("POST /hook?timeout=10s HTTP/1.1\r\n")
    assert "Content-Type: application/json\r\n" in server.heads[0]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda _: reply('{"uid":"another","allowed":true}'), "no uid-"),
        (lambda review: reply(f'{{"uid":"{review["request"]["uid"]}","allowed":false}}'), 'no "allowed":true'),
        (lambda review: allow(review).replace(b"200 OK", b"500 Oh"), "status 500"),
        (lambda _: b"not HTTP\r\n\r\n", "malformed HTTP"),
        (lambda _: b"", "EOF"),
    ],
)
async def test_wrong_replies_are_errors(tmp_path: Path, answer: Answer, error: str) -> None:
    result = await Server(answer, tmp_path).load()
    assert result["requests"] == 0
    assert result["errors"] > 0
    assert error in result["error"]
