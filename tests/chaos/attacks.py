"""Attacks that any client of the port can make: idle connections, and bytes that are not a review."""

import contextlib
import itertools
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random

from tests.support.live_service import head

MEGABYTE = 2**20
# The API server and the usual reviews use other addresses, because the service limits clients by address.
_ADDRESSES = itertools.count(2)


def _next_address() -> str:
    number = next(_ADDRESSES)
    return f"127.0.{number // 250}.{number % 250 + 2}"


@contextmanager
def crowd(port: int, count: int) -> Iterator[None]:
    """Start `count` silent connections from several addresses. Does not wait until they are open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for number in range(count):
            if number % 500 == 0:
                address = _next_address()
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            connection.bind((address, 0))
            connection.connect_ex(("127.0.0.1", port))
        yield


@contextmanager
def slow_clients(port: int, rng: Random, count: int) -> Iterator[None]:
    """Clients that stop halfway through a header or a body, or that never read a reply."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    address = _next_address()
    large = b"[" * MEGABYTE
    length = str(len(large))
    kinds = (
        head("/validate-mpijob", content_length=length)[:-10],
        head("/validate-mpijob", content_length=length) + large[: rng.randrange(MEGABYTE)],
        (head("/validate-mpijob", content_length="2") + b"{}") * 1000,
    )
    with ExitStack() as stack:
        for number in range(count):
            # The service may reject the connection, or a buffer may be full: the test is about the other clients.
            with contextlib.suppress(OSError):
                plain = stack.enter_context(_connected(port, address))
                secure = stack.enter_context(context.wrap_socket(plain))
                secure.settimeout(0.5)
                secure.sendall(kinds[number % len(kinds)])
        yield


@contextmanager
def garbage(port: int, rng: Random, count: int) -> Iterator[None]:
    """Clients that send bytes other than TLS, or a TLS handshake that is cut off or damaged."""
    hello = _client_hello()
    address = _next_address()
    with ExitStack() as stack:
        for _ in range(count):
            spoiled = bytearray(hello)
            spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
            data = rng.choice(
                (
                    rng.randbytes(rng.randrange(1, 5000)),
                    hello[: rng.randrange(len(hello))],
                    bytes(spoiled),
                    b"GET / HTTP/1.1\r\n\r\n",
                )
            )
            with contextlib.suppress(OSError):
                stack.enter_context(_connected(port, address)).sendall(data)
        yield


def _client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="x").do_handshake()
    return outgoing.read()


def _connected(port: int, address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(address, 0))
