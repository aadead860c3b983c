"""Sources of the serving certificate: the certificate that each source provides, and when the source is healthy."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from certs.authority import Authority
from certs.notice import Notice
from certs.rotation import Phase
from tests.support.logs import Log
from tests.support.watch_api import until
from webhook.client import calls
from webhook.client.calls import ClusterError
from webhook.server.certificates import CertificateSource, files, in_memory, self_managed, source_for
from webhook.server.settings import ServeSettings, StartError
from webhook.server.telemetry import Telemetry

CA = Authority("test CA", lifetime=timedelta(days=1))
LATER, EARLIER = (datetime.now(UTC) + timedelta(hours=hours) for hours in (1000, -1))


class Api:
    """A fake API client. It stores the Events and whether it was closed."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.closed = False

    async def request(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert (method, path) == ("POST", "/api/v1/namespaces/mpijob-webhook/events")
        self.events.append(body)
        return {}

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    created = Api()

    async def connect(kubeconfig: Path) -> Api:
        return created

    monkeypatch.setattr(calls, "connect", connect)
    return created


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry(Log())


def not_after(telemetry: Telemetry, certificate: str) -> float | None:
    return telemetry.registry.get_sample_value("mpijob_webhook_cert_expiry_timestamp_seconds", {"cert": certificate})


def test_settings_decide_the_source_of_the_certificate(telemetry: Telemetry) -> None:
    def chosen(**settings: Any) -> type:
        return type(source_for(ServeSettings(**settings), telemetry))

    assert chosen() is in_memory.InMemorySource
    assert chosen(tls_cert=Path("c"), tls_key=Path("k")) is files.FileSource
    assert chosen(ca_secret="ca", service="s") is self_managed.SelfManagedSource


async def test_certificate_in_memory_is_healthy_at_once(telemetry: Telemetry) -> None:
    created = source_for(ServeSettings(listen=("127.0.0.1", 0)), telemetry)
    assert (created.problem, created.ca_pem) == ("not yet", None)
    async with created.start() as certificate:
        assert created.problem == ""
        assert created.ca_pem is not None
        assert created.ca_pem.startswith(b"-----BEGIN CERTIFICATE-----")
        assert not_after(telemetry, "serving") == certificate.not_after.timestamp()


class Files:
    """A fake `FileCertificate` without behaviour."""

    def __init__(self, *paths: Path, listener: Callable[[Notice], None], **_: Any) -> None:
        self.serving = SimpleNamespace(not_after=LATER)
        self.listener = listener
        created.append(self)

    async def run(self) -> None:
        await asyncio.Event().wait()


created: list[Any] = []


def file_source(telemetry: Telemetry, **settings: Any) -> CertificateSource:
    return source_for(ServeSettings(tls_cert=Path("tls.crt"), tls_key=Path("tls.key"), **settings), telemetry)


async def test_damaged_files_are_harmless_until_the_certificate_expires(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FileCertificate", Files)
    source = file_source(telemetry)
    async with source.start():
        assert not source.problem
        problem = Notice("CertificateProblem", "tls.crt: expired", warning=True)
        created[-1].listener(problem)
        assert not source.problem
        created[-1].serving.not_after = EARLIER
        created[-1].listener(problem)
        assert source.problem == "tls.crt: expired"
        assert not_after(telemetry, "serving") == EARLIER.timestamp()
        created[-1].serving.not_after = LATER
        created[-1].listener(Notice("CertificateReloaded", "serving the new certificate"))
        assert not source.problem
        assert not_after(telemetry, "serving") == LATER.timestamp()
    assert source.ca_pem is None


async def test_object_of_the_event_about_the_certificate_is_the_service(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, api: Api
) -> None:
    monkeypatch.setattr(files, "FileCertificate", Files)
    async with file_source(telemetry, kubeconfig=Path("config"), service="web").start():
        created[-1].listener(Notice("CertificateReloaded", "serving the new certificate"))
        await until(lambda: api.events)
    (event,) = api.events
    assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("Service", "web")
    assert (event["reason"], event["type"]) == ("CertificateReloaded", "Normal")
    assert api.closed


async def test_invalid_files_at_the_start_are_an_error(telemetry: Telemetry, api: Api) -> None:
    source = file_source(telemetry, kubeconfig=Path("config"))
    with pytest.raises(StartError, match=r"^tls\.crt: cannot read tls\.crt: No such file or directory$"):
        async with source.start():
            pass
    assert source.problem == "not yet"
    assert api.closed


class Keeper:
    """A fake `SelfManaged` without behaviour."""

    def __init__(self, *_: Any, after_pass: Callable[[], None], listener: Callable[[Notice], None], **__: Any) -> None:
        self.after_pass = after_pass
        self.listener = listener
        self.trusted = False
        self.last_error: str | None = None
        self.phase: Phase | None = None
        self.foreign_ca: str | None = None
        self.untrusting: tuple[str, ...] = ()
        self.leaf_not_after: datetime | None = None
        self.ca_not_after: datetime | None = None
        created.append(self)

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def first_certificate(self) -> str:
        return "certificate"


async def test_self_managed_certificate_is_healthy_only_if_trusted(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, api: Api
) -> None:
    monkeypatch.setattr(self_managed, "SelfManaged", Keeper)
    source = source_for(ServeSettings(ca_secret="ca", service="web"), telemetry)
    async with source.start() as certificate:
        keeper = created[-1]
        assert (certificate, source.problem) == ("certificate", "not yet")
        keeper.untrusting = ("one", "two")
        keeper.after_pass()
        assert source.problem == "not trusted yet by one, two"
        keeper.last_error = "no answer"
        keeper.after_pass()
        assert source.problem == "no answer"
        assert not_after(telemetry, "serving") is None
        keeper.trusted, keeper.leaf_not_after, keeper.ca_not_after = True, LATER, EARLIER
        keeper.after_pass()
        assert not source.problem
        # A caBundle that does not trust the certificate is reported, and does not affect other caBundles.
        assert source.concerns() == {
            "certificates": "no answer",
            "ca-bundle": "not trusted by one, two, whose calls fail: no answer",
        }
        assert telemetry.registry.get_sample_value("mpijob_webhook_ca_bundles_untrusting") == 2
        keeper.untrusting, keeper.last_error = (), None
        keeper.after_pass()
        assert source.concerns() == {}
        assert (not_after(telemetry, "serving"), not_after(telemetry, "ca")) == (LATER.timestamp(), EARLIER.timestamp())
        keeper.listener(Notice("LeafIssued", "a new one"))
        await until(lambda: api.events)
    assert (api.events[0]["involvedObject"]["kind"], api.events[0]["involvedObject"]["name"]) == ("Secret", "ca")
    assert api.closed
    assert source.ca_pem is None


async def test_self_managed_certificate_without_a_cluster_is_an_error(telemetry: Telemetry, tmp_path: Path) -> None:
    settings = ServeSettings(ca_secret="ca", service="web", kubeconfig=tmp_path / "none")
    with pytest.raises(ClusterError, match="cannot read the kubeconfig"):
        async with source_for(settings, telemetry).start():
            pass
