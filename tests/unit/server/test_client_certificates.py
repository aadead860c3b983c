"""Client certificates: the ports that require them, and the accepted CAs and names."""

import ssl
import time
from pathlib import Path
from typing import Any

import pytest

from certs.serving import ServingCertificate
from tests.support import jobs, tls
from tests.support.client_certificates import ClientCa
from tests.support.live_service import Connection, Live, Response, live
from tests.support.logs import Log
from webhook.server.client_ca import ClientCaFile
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
    """The reply to a review that a client with this certificate sends."""
    made = ssl.create_default_context

    def context(**options: Any) -> ssl.SSLContext:
        client = made(**options)
        if pair is not None:
            client.load_cert_chain(*pair)
        return client

    monkeypatch.setattr(ssl, "create_default_context", context)
    assert running.service.ca_pem is not None
    connection = Connection(running.service.url, running.service.ca_pem)
    try:
        return connection.post("/validate-mpijob", GOOD)
    finally:
        connection.close()


@pytest.mark.parametrize(("name", "dns"), [("kube-apiserver", ()), ("whoever", ("x", "api.example.com"))])
def test_certificate_for_an_accepted_name_is_accepted(
    running: Live, monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, dns: tuple[str, ...]
) -> None:
    assert post(running, monkeypatch, CA.pair(folder, name, *dns)).answer["allowed"] is True


def test_certificate_for_a_different_client_is_rejected(
    running: Live, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """The same CA may also issue certificates for nodes. A node must not get verdicts."""
    response = post(running, monkeypatch, CA.pair(folder, "system:node:n1"))
    assert (response.status, response.body) == (
        403,
        b"the client certificate names a different client: system:node:n1\n",
    )
    assert running.log("refused")[-1]["reason"] == "the client certificate names a different client"
    assert running.metric("bad_requests_total", code="403") == 1


@pytest.mark.parametrize("ca", [None, ClientCa("new_ca")], ids=["none", "another CA"])
def test_missing_or_foreign_client_certificate_is_rejected(
    running: Live, monkeypatch: pytest.MonkeyPatch, folder: Path, ca: ClientCa | None
) -> None:
    before = running.metric("reviews_total", **ALLOWED)
    with pytest.raises((ConnectionError, ssl.SSLError)):
        post(running, monkeypatch, None if ca is None else ca.pair(folder, "kube-apiserver"))
    assert running.metric("reviews_total", **ALLOWED) == before


def test_operations_port_needs_no_client_certificate(running: Live) -> None:
    assert running.ops("/healthz") == "ok\n"


async def test_renewed_serving_certificate_requires_a_client_certificate(tmp_path: Path) -> None:
    served = ServingCertificate(*_pem(tls.pair()))
    served.require_clients(CA.pem)
    served.swap(*_pem(tls.pair()))
    async with tls.listener(served) as port:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await _answer(port, tls.client_context())
        trusted = tls.client_context()
        trusted.load_cert_chain(*CA.pair(tmp_path, "kube-apiserver"))
        await _answer(port, trusted)


async def test_new_ca_replaces_the_old_ca(tmp_path: Path) -> None:
    new_ca = ClientCa("new_ca")
    served = ServingCertificate(*_pem(tls.pair()))
    served.require_clients(CA.pem)
    served.require_clients(new_ca.pem)
    async with tls.listener(served) as port:
        before, now = tls.client_context(), tls.client_context()
        before.load_cert_chain(*CA.pair(tmp_path, "before"))
        now.load_cert_chain(*new_ca.pair(tmp_path, "now"))
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await _answer(port, before)
        await _answer(port, now)
        served.swap(*_pem(tls.pair()))
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await _answer(port, before)
        await _answer(port, now)


async def test_changed_ca_file_is_used_and_a_damaged_ca_file_is_reported(tmp_path: Path) -> None:
    required: list[bytes] = []

    class Served(ServingCertificate):
        def require_clients(self, ca_pem: bytes) -> None:
            super().require_clients(ca_pem)
            required.append(ca_pem)

    log, path, new_ca = Log(), tmp_path / "ca.crt", ClientCa("new_ca").pem
    path.write_bytes(CA.pem)
    file = ClientCaFile(path, Served(*_pem(tls.pair())), log=log)
    await file.poll()
    assert required == [CA.pem]
    path.write_bytes(new_ca)
    await file.poll()
    assert required == [CA.pem, new_ca]
    assert log.events("client CA") == [{"reloaded": str(path)}]
    path.write_bytes(b"half of")
    await file.poll()
    assert file.concerns() == {}  # the file may be in the middle of a write
    for _ in range(3):
        await file.poll()
    (concern,) = file.concerns().items()
    assert concern[0] == "client-ca"
    assert concern[1].startswith(f"{path}: not a CA certificate in PEM: ")
    assert concern[1].endswith("; the CAs read earlier are still used")
    assert len(log.events("client CA")) == 2
    path.unlink()
    await file.poll()
    await file.poll()
    gone = f"cannot read {path}: No such file or directory; the CAs read earlier are still used"
    assert file.concerns() == {"client-ca": gone}
    path.write_bytes(new_ca)
    await file.poll()
    assert file.concerns() == {}
    assert required == [CA.pem, new_ca]


def test_running_service_notices_changes_of_the_ca_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("webhook.server.client_ca.INTERVAL", 0.01)
    path, new_ca = tmp_path / "ca.crt", ClientCa("new_ca")
    path.write_bytes(CA.pem)
    with live(client_ca=path, client_names=("kube-apiserver",)) as service:
        path.write_bytes(b"half of")
        while "[!]client-ca: " not in service.ops("/readyz"):
            time.sleep(0.01)
        # The file is replaced in one step, because a partly written file would have a different fault first.
        (tmp_path / "new.crt").write_bytes(new_ca.pem)
        (tmp_path / "new.crt").rename(path)
        while "client-ca" in service.ops("/readyz"):
            time.sleep(0.01)
        pair = new_ca.pair(tmp_path, "kube-apiserver")
        assert post(service, monkeypatch, pair).answer["allowed"] is True


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
        (CA.pem, (), "--client-ca and --client-name must be used together"),
    ],
    ids=["no file", "no certificate", "no name"],
)
def test_invalid_client_ca_settings_are_rejected(
    tmp_path: Path, content: bytes | None, names: tuple[str, ...], problem: str
) -> None:
    ca = tmp_path / "ca.crt"
    if content is not None:
        ca.write_bytes(content)
    with pytest.raises(StartError) as error, live(client_ca=ca, client_names=names):
        pass
    assert str(error.value).startswith(problem.format(ca=ca))
