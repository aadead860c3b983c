"""Who has to show a certificate, of which CA and for which name."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from certs.serving import ServingCertificate
from tests.support import jobs, tls
from tests.support.client_certificates import ClientCa
from tests.support.live_service import Connection, Live, Response, live
from webhook.server.service import StartError

GOOD = jobs.body(jobs.GOOD)
CA = ClientCa()
ALLOWED = {"webhook": "validate", "operation": "CREATE", "decision": "allowed", "dry_run": "false"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("clients")
    (made / "ca.crt").write_bytes(CA.pem)
    return made


@pytest.fixture(scope="module")
def running(folder: Path) -> Any:
    with live(client_ca=folder / "ca.crt", client_names=("kube-apiserver", "api.example.com")) as service:
        yield service


def post(running: Live, monkeypatch: pytest.MonkeyPatch, pair: tuple[Path, Path] | None) -> Response:
    """A review by a client that shows this certificate."""
    made = ssl.create_default_context

    def context(**options: Any) -> ssl.SSLContext:
        found = made(**options)
        if pair is not None:
            found.load_cert_chain(*pair)
        return found

    monkeypatch.setattr(ssl, "create_default_context", context)
    assert running.service.ca_pem is not None
    connection = Connection(running.service.url, running.service.ca_pem)
    try:
        return connection.post("/validate-mpijob", GOOD)
    finally:
        connection.close()


@pytest.mark.parametrize(("name", "dns"), [("kube-apiserver", ()), ("whoever", ("x", "api.example.com"))])
def test_a_certificate_for_one_of_the_names(
    running: Live, monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, dns: tuple[str, ...]
) -> None:
    assert post(running, monkeypatch, CA.pair(folder, name, *dns)).answer["allowed"] is True


def test_a_certificate_for_somebody_else(running: Live, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A CA of a cluster issues certificates for each of its nodes too."""
    response = post(running, monkeypatch, CA.pair(folder, "system:node:n1"))
    assert (response.status, response.body) == (403, b"the client certificate is for somebody else: system:node:n1\n")
    assert running.log("refused")[-1]["reason"] == "the client certificate is for somebody else"
    assert running.metric("bad_requests_total", code="403") == 1


@pytest.mark.parametrize("ca", [None, ClientCa("another")], ids=["none", "another CA"])
def test_no_certificate_or_one_of_another_ca(
    running: Live, monkeypatch: pytest.MonkeyPatch, folder: Path, ca: ClientCa | None
) -> None:
    before = running.metric("reviews_total", **ALLOWED)
    with pytest.raises((ConnectionError, ssl.SSLError)):
        post(running, monkeypatch, None if ca is None else ca.pair(folder, "kube-apiserver"))
    assert running.metric("reviews_total", **ALLOWED) == before


def test_the_operations_port_needs_none(running: Live) -> None:
    assert running.ops("/healthz") == "ok\n"


async def test_a_renewed_certificate_asks_for_one_too(tmp_path: Path) -> None:
    served = ServingCertificate(*_pem(tls.pair()))
    served.require_clients(CA.pem)
    served.swap(*_pem(tls.pair()))
    async with tls.listener(served) as port:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await _answer(port, tls.client_context())
        known = tls.client_context()
        known.load_cert_chain(*CA.pair(tmp_path, "kube-apiserver"))
        await _answer(port, known)


async def _answer(port: int, context: ssl.SSLContext) -> None:
    async with tls.connected(port, context=context) as (reader, writer):
        writer.write(b"x\n")
        await writer.drain()
        if not await reader.readline():
            raise ConnectionError("closed")


def _pem(pair: Any) -> tuple[bytes, bytes]:
    return pair.certificate_pem, pair.key_pem


@pytest.mark.parametrize(
    ("content", "names", "problem"),
    [
        (None, ("a",), "cannot read {ca}: No such file or directory"),
        (b"nothing", ("a",), "{ca}: not a CA certificate in PEM"),
        (CA.pem, (), "--client-ca and --client-name are only of use together"),
    ],
    ids=["no file", "no certificate", "no name"],
)
def test_settings_that_cannot_be_used(
    tmp_path: Path, content: bytes | None, names: tuple[str, ...], problem: str
) -> None:
    ca = tmp_path / "ca.crt"
    if content is not None:
        ca.write_bytes(content)
    with pytest.raises(StartError) as error, live(client_ca=ca, client_names=names):
        pass
    assert str(error.value).startswith(problem.format(ca=ca))
