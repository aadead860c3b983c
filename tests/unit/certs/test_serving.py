import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvloop
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from certs import serving
from certs.authority import Authority
from certs.serving import CertificateError, ServingCertificate, read_pair
from tests.support.tls import (
    CA,
    DAY,
    client_context,
    connected,
    listener,
    pair,
    self_signed_rsa,
    serial,
    served,
    served_now,
)

ONE, OTHER = pair(), pair()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def in_loop(request):
    """Runs a coroutine function in each type of event loop, because the types have different TLS implementations."""

    def run(function):
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(function())

    return run


def test_swap_affects_new_handshakes_and_not_open_connections(in_loop):
    first, second = pair(), pair(lifetime=2 * DAY)

    async def check():
        certificate = ServingCertificate(first.certificate_pem, first.key_pem)
        async with listener(certificate) as port, connected(port) as (reader, writer):
            assert await served_now(port) == serial(first.certificate_pem)
            certificate.swap(second.certificate_pem, second.key_pem)
            assert certificate.not_after == second.not_after
            assert await served_now(port) == serial(second.certificate_pem)
            writer.write(b"still there\n")
            assert await reader.readline() == b"still there\n"
            assert served(writer) == serial(first.certificate_pem)

    in_loop(check)


def test_new_certificate_with_another_type_of_key_is_served_with_and_without_a_server_name(in_loop):
    rsa_certificate, rsa_key = self_signed_rsa("localhost")
    context = client_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    async def check():
        certificate = ServingCertificate(ONE.certificate_pem, ONE.key_pem)
        certificate.swap(rsa_certificate, rsa_key)
        async with listener(certificate) as port:
            for name in ("", "localhost"):
                assert await served_now(port, context=context, server_hostname=name) == serial(rsa_certificate)

    in_loop(check)


def test_http_1_1_and_the_newest_common_tls_version_are_negotiated(in_loop):
    context = client_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    old = client_context()
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2

    async def check():
        async with listener(ServingCertificate(ONE.certificate_pem, ONE.key_pem)) as port:
            async with connected(port, context=context) as (_, writer):
                connection = writer.get_extra_info("ssl_object")
                assert (connection.selected_alpn_protocol(), connection.version()) == ("http/1.1", "TLSv1.3")
            async with connected(port, context=old) as (_, writer):
                assert writer.get_extra_info("ssl_object").version() == "TLSv1.2"

    in_loop(check)


def test_protocols_older_than_tls_1_2_are_rejected():
    certificate = ServingCertificate(ONE.certificate_pem, ONE.key_pem)
    assert certificate.context.minimum_version == ssl.TLSVersion.TLSv1_2


def encrypted(pem):
    return load_pem_private_key(pem, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )


OTHER_KEY = "the private key does not belong to the certificate"
NO_CERTIFICATE = "the certificate is not PEM, or damaged"
NO_KEY = "the private key is not PEM, or damaged"
INVALID = {
    "another key": (ONE.certificate_pem, OTHER.key_pem, OTHER_KEY),
    "no certificate": (b"", ONE.key_pem, NO_CERTIFICATE),
    "half a certificate": (ONE.certificate_pem[:200], ONE.key_pem, NO_CERTIFICATE),
    "a key instead of a certificate": (ONE.key_pem, ONE.key_pem, NO_CERTIFICATE),
    "no key": (ONE.certificate_pem, b"", NO_KEY),
    "half a key": (ONE.certificate_pem, ONE.key_pem[:80], NO_KEY),
    "a certificate instead of a key": (ONE.certificate_pem, ONE.certificate_pem, NO_KEY),
    "a passphrase": (
        ONE.certificate_pem,
        encrypted(ONE.key_pem),
        "the private key is encrypted; give one without a passphrase",
    ),
    "the CA first": (CA.certificate_pem + ONE.certificate_pem, ONE.key_pem, OTHER_KEY),
}


@pytest.mark.parametrize(("chain", "key", "fault"), INVALID.values(), ids=INVALID)
def test_invalid_certificate_is_rejected_and_the_old_certificate_is_still_served(chain, key, fault):
    certificate = ServingCertificate(ONE.certificate_pem, ONE.key_pem)
    with pytest.raises(CertificateError) as error:
        certificate.swap(chain, key)
    assert str(error.value) == fault
    assert certificate.not_after == ONE.not_after

    async def check():
        async with listener(certificate) as port:
            assert await served_now(port) == serial(ONE.certificate_pem)

    asyncio.run(check())
    with pytest.raises(CertificateError):
        ServingCertificate(chain, key)


def test_expired_or_not_yet_valid_certificate_is_rejected():
    now = datetime(2026, 3, 1, tzinfo=UTC)
    ca = Authority("test CA", lifetime=30 * DAY, now=now)
    leaf = ca.issue(["localhost"], lifetime=DAY, now=now)
    ServingCertificate(leaf.certificate_pem, leaf.key_pem, now=now + DAY - timedelta(seconds=1))
    with pytest.raises(CertificateError, match="the certificate expired at 2026-03-02T00:00:00Z"):
        ServingCertificate(leaf.certificate_pem, leaf.key_pem, now=now + DAY)
    ServingCertificate(leaf.certificate_pem, leaf.key_pem, now=now - timedelta(minutes=9))
    with pytest.raises(CertificateError, match="the certificate is not valid before 2026-02-28T23:55:00Z"):
        ServingCertificate(leaf.certificate_pem, leaf.key_pem, now=now - timedelta(minutes=11))


def test_chain_without_a_last_line_break_is_accepted():
    ServingCertificate(ONE.certificate_pem.rstrip(), ONE.key_pem.rstrip())


def test_unreadable_files_are_an_error(tmp_path):
    (tmp_path / "tls.crt").write_bytes(ONE.certificate_pem)
    with pytest.raises(CertificateError, match=r"^cannot read .*/none: No such file or directory$"):
        read_pair(tmp_path / "tls.crt", tmp_path / "none")


@pytest.mark.parametrize("memory", [True, False], ids=["memory", "file"])
def test_key_files_are_private_and_removed(monkeypatch, tmp_path, memory):
    if not memory:
        monkeypatch.setattr(serving.os, "memfd_create", lambda name: (_ for _ in ()).throw(OSError()))
    monkeypatch.setattr(serving.tempfile, "tempdir", str(tmp_path))
    with serving._private_file(b"secret") as name:
        path = Path(name)
        assert path.read_bytes() == b"secret"
        if not memory:
            assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []
    ServingCertificate(ONE.certificate_pem, ONE.key_pem)
