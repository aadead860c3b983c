"""A TLS server with a serving certificate, and strict clients that return the certificate's serial number."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from certs.authority import Authority

DAY = timedelta(days=1)

CA = Authority("test CA", lifetime=30 * DAY)


def pair(**kwargs):
    return CA.issue(["localhost"], **({"lifetime": DAY} | kwargs))


def self_signed_rsa(name, *extensions, not_before=None):
    """(certificate, key) as PEM, with an RSA key. The certificate is valid for a day."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    start = not_before or datetime.now(UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, start, start + DAY)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    certificate = builder.sign(key, SHA256()).public_bytes(Encoding.PEM)
    return certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def serial(pem):
    return x509.load_pem_x509_certificate(pem).serial_number


def strict_client(bundle):
    context = ssl.create_default_context(cadata=bundle.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def client_context():
    return strict_client(CA.certificate_pem)


@asynccontextmanager
async def listener(certificate):
    async def echo(reader, writer):
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=certificate.context)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def connected(port, *, context=None, server_hostname="localhost"):
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context or client_context(), server_hostname=server_hostname
    )
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


def served(writer):
    return x509.load_der_x509_certificate(
        writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    ).serial_number


async def served_now(port, **kwargs):
    async with connected(port, **kwargs) as (_, writer):
        return served(writer)
