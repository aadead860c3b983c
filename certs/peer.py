"""What a TLS server presents, and whether a client that trusts a caBundle accepts it."""

import asyncio
import ssl

from cryptography import x509

from certs.limits import MAX_PEER_SECONDS
from certs.pem import load_certificates


class PeerError(Exception):
    """There is no TLS server to be seen; the message is one line for a human."""


async def fetch_chain(host: str, port: int, *, server_name: str | None = None) -> tuple[x509.Certificate, ...]:
    """What the server at `host`:`port` presents, leaf first, without judging it; PeerError when it cannot be had.

    `server_name` (default: `host`) is the name to ask for. Before Python 3.13 only the leaf can be seen.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        connection = await _handshake(context, host, port, server_name or host)
    except ssl.SSLError as error:
        raise PeerError(f"no TLS at {host}:{port}: {error.reason or error}") from None
    whole = getattr(connection, "get_unverified_chain", None)
    chain = whole() if whole else [connection.getpeercert(binary_form=True)]
    return tuple(x509.load_der_x509_certificate(der) for der in chain if der)


async def refusal(host: str, port: int, *, ca_pem: bytes, server_name: str) -> str | None:
    """Why a client that trusts the caBundle `ca_pem` refuses the server; None when it does not.

    Raises PeerError when there is no server, CertificateError when `ca_pem` is damaged or empty.
    """
    load_certificates(ca_pem)
    context = ssl.create_default_context(cadata=ca_pem.decode("ascii", "replace"))
    try:
        await _handshake(context, host, port, server_name)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except ssl.SSLError as error:
        raise PeerError(f"no TLS at {host}:{port}: {error.reason or error}") from None
    return None


async def _handshake(context: ssl.SSLContext, host: str, port: int, server_name: str) -> ssl.SSLObject:
    try:
        async with asyncio.timeout(MAX_PEER_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=server_name)
    except TimeoutError:
        raise PeerError(f"no answer from {host}:{port} within {MAX_PEER_SECONDS:g} s") from None
    except ssl.SSLError:
        raise
    except OSError as error:
        raise PeerError(f"cannot reach {host}:{port}: {error.strerror or error}") from None
    connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
    # Nothing is waited for: some servers never answer the farewell.
    writer.transport.abort()
    return connection
