"""The certificates that a TLS server presents."""

import asyncio
import ssl

from cryptography import x509

from certs.limits import MAX_PEER_SECONDS


class PeerError(Exception):
    """The message is one line for a human."""


async def fetch_chain(host: str, port: int, *, server_name: str | None = None) -> tuple[x509.Certificate, ...]:
    """The server's certificates, leaf first and unverified. Raises PeerError if the connection fails.

    `server_name` defaults to `host`. Before Python 3.13 only the leaf is available.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(MAX_PEER_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=server_name or host)
    except TimeoutError:
        raise PeerError(f"no answer from {host}:{port} within {MAX_PEER_SECONDS:g} s") from None
    except ssl.SSLError as error:
        raise PeerError(f"no TLS at {host}:{port}: {error.reason or error}") from None
    except OSError as error:
        raise PeerError(f"cannot reach {host}:{port}: {error.strerror or error}") from None
    connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
    writer.transport.abort()  # some servers never complete the shutdown
    whole = getattr(connection, "get_unverified_chain", None)
    chain = whole() if whole else [connection.getpeercert(binary_form=True)]
    return tuple(x509.load_der_x509_certificate(der) for der in chain if der)
