"""The certificate of a TLS listener, and its replacement while the listener runs.

A new pair of certificate and key cannot be loaded into a live SSLContext: a key that does not match breaks every later
handshake, and OpenSSL ignores a pair with a different key type. Each pair gets its own context instead. The listener's
context passes every handshake to the current context by `sni_callback`, also for clients that send no server name.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from certs.authority import CLOCK_SKEW
from certs.pem import CertificateError, load_pair

__all__ = ["CertificateError", "ServingCertificate", "read_pair"]


class ServingCertificate:
    """The server gets `context` once. `swap` replaces the pair for later handshakes."""

    context: ssl.SSLContext
    not_after: datetime
    _client_ca: str = ""

    def __init__(self, chain_pem: bytes, key_pem: bytes, *, now: datetime | None = None) -> None:
        """The leaf is first in `chain_pem`. CertificateError if the pair cannot be served."""
        self._pair = chain_pem, key_pem
        self.not_after = _check(chain_pem, key_pem, now)
        self._current = _context(chain_pem, key_pem)
        # OpenSSL chooses the cipher before it calls `sni_callback`, so this context needs a certificate too.
        self.context = _context(chain_pem, key_pem)
        self.context.sni_callback = self._select

    def require_clients(self, ca_pem: bytes) -> None:
        """Require client certificates from these CAs (PEM). After a CertificateError the previous CAs stay."""
        ca = ca_pem.decode("ascii", "replace")
        context = _context(*self._pair)  # a new context, because a CA cannot be removed from a context
        _require(context, ca)
        # The listener's context decides whether to request a certificate. The current context decides which CAs to
        # trust.
        _require(self.context, ca)
        self._current, self._client_ca = context, ca

    def swap(self, chain_pem: bytes, key_pem: bytes, *, now: datetime | None = None) -> None:
        """Serve this pair from the next handshake on. After a CertificateError the old pair stays."""
        not_after = _check(chain_pem, key_pem, now)
        context = _context(chain_pem, key_pem)
        if self._client_ca:
            _require(context, self._client_ca)
        self._pair = chain_pem, key_pem
        self._current, self.not_after = context, not_after

    def _select(self, connection: ssl.SSLObject, server_name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._current


def read_pair(certificate: Path, key: Path) -> tuple[bytes, bytes]:
    """The content of both files; CertificateError if a file cannot be read."""
    try:
        return certificate.read_bytes(), key.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {error.filename}: {error.strerror}") from None


def _require(context: ssl.SSLContext, ca: str) -> None:
    try:
        context.load_verify_locations(cadata=ca)
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(f"not a CA certificate in PEM: {error}") from None
    context.verify_mode = ssl.CERT_REQUIRED


def _context(chain_pem: bytes, key_pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would keep the identity of a replaced certificate.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    with _private_file(chain_pem.rstrip() + b"\n" + key_pem) as path:
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise CertificateError(f"OpenSSL rejects the certificate: {error.reason or error}") from None
    return context


def _check(chain_pem: bytes, key_pem: bytes, now: datetime | None) -> datetime:
    """The expiry of the leaf; CertificateError if no client would accept the pair."""
    now = now or datetime.now(UTC)
    (leaf, *_), _key = load_pair(chain_pem, key_pem)
    if leaf.not_valid_after_utc <= now:
        raise CertificateError(f"the certificate expired at {leaf.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}")
    if leaf.not_valid_before_utc > now + CLOCK_SKEW:
        raise CertificateError(f"the certificate is not valid before {leaf.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}")
    return leaf.not_valid_after_utc


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """A path to `content`, because `ssl` loads keys only from files. The file is in memory on Linux."""
    try:
        descriptor = os.memfd_create("certificate")
    except (AttributeError, OSError):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
        return
    with os.fdopen(descriptor, "wb") as memory:
        memory.write(content)
        memory.flush()
        yield f"/proc/self/fd/{descriptor}"
