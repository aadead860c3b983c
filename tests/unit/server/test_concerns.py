"""If a replica can still answer reviews despite a fault, `/readyz` has a line about the fault and still passes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp.test_utils import RawTestServer

from certs.authority import Authority, KeyPair
from tests.support.ca_store import DAY, Cluster
from tests.support.logs import Log
from tests.support.object_api import kubeconfig
from tests.support.paths import ROOT
from tests.support.policies import HEADER
from tests.support.watch_api import FakeApi, refused, until
from tests.support.watched_policies import Api as PolicyApi
from tests.support.watched_policies import copy, following
from webhook.client import calls
from webhook.server.certificates import self_managed, source_for
from webhook.server.cluster_link import linked
from webhook.server.ops import Readiness
from webhook.server.settings import ServeSettings
from webhook.server.telemetry import Telemetry

Concerns = Callable[[], Mapping[str, str]]
Fault = AbstractAsyncContextManager[Concerns]
YESTERDAY = datetime.now(UTC) - DAY
OURS, FOREIGN = (Authority(name, lifetime=3 * DAY, now=YESTERDAY) for name in ("ours", "foreign"))
HOST: Final = "web.mpijob-webhook.svc"


class NoApi:
    """An API client that accepts every request and does nothing."""

    async def request(self, *_: Any) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        pass


@asynccontextmanager
async def ca_secret(data: dict[str, bytes] | None, _: Path) -> AsyncIterator[Concerns]:
    """A replica with a self-managed CA, after the Secret's data was replaced by `data`."""
    store = Cluster()

    async def connect(_: Any) -> NoApi:
        return NoApi()

    settings = ServeSettings(ca_secret="ca", service="web", leaf_lifetime=1)
    source = source_for(settings, Telemetry(Log()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "connect", connect)
        patch.setattr(self_managed, "CertificateStore", lambda *_, **__: store)
        async with source.start():
            await until(lambda: not source.problem)
            assert source.concerns() == {}
            store.set_data(data)
            yield source.concerns


def pair(authority: Authority = OURS, hours: float = 24) -> KeyPair:
    return authority.issue([HOST], lifetime=DAY + timedelta(hours=hours), now=YESTERDAY)


@asynccontextmanager
async def files(after: tuple[bytes, bytes], folder: Path) -> AsyncIterator[Concerns]:
    """A replica whose valid certificate files were later replaced by `after`."""
    certificate, key, ca = (folder / name for name in ("tls.crt", "tls.key", "ca.crt"))
    first = pair()
    certificate.write_bytes(first.certificate_pem)
    key.write_bytes(first.key_pem)
    ca.write_bytes(OURS.certificate_pem)
    settings = ServeSettings(tls_cert=certificate, tls_key=key, tls_ca=ca, service="web")
    source: Any = source_for(settings, Telemetry(Log()))
    async with source.start():
        assert source.concerns() == {}
        certificate.write_bytes(after[0])
        key.write_bytes(after[1])
        for _look in range(2):
            await source._files.poll()
        assert not source.problem
        yield source.concerns


@asynccontextmanager
async def policies(remembered: str, _: Path) -> AsyncIterator[Concerns]:
    """A replica that reads a broken policy."""
    async with following(PolicyApi(remembered=copy(platform=remembered))) as (watch, _applied, _log):
        watch.now(platform=HEADER + "mode: loud")
        yield watch.concerns


@asynccontextmanager
async def cluster(status: int, folder: Path) -> AsyncIterator[Concerns]:
    """A replica whose list requests are all rejected with `status`."""
    api = FakeApi()
    api.lists = [refused(status)]
    async with RawTestServer(api.handle) as server:
        config = kubeconfig(folder / "config", str(server.make_url("")).rstrip("/"))
        link = linked(config, namespace="ns", kueue_namespace="kueue", base=(), apply=lambda *_: None, log=Log())
        async with link as connected:
            yield connected.concerns


EXPIRED, OTHER = pair(hours=-1), pair(FOREIGN)


@pytest.mark.parametrize(
    ("fault", "given", "name", "text"),
    [
        (ca_secret, None, "ca-secret", "the CA Secret does not exist; apply the manifests again"),
        (
            ca_secret,
            {"ca.crt": FOREIGN.certificate_pem, "ca.key": FOREIGN.key_pem},
            "ca-secret",
            'the CA Secret has the CA "foreign", which this service did not make. Remove ca.key from the Secret',
        ),
        (files, (EXPIRED.certificate_pem, EXPIRED.key_pem), "certificate-files", "tls.crt: the certificate expired at"),
        (files, (EXPIRED.certificate_pem[:400], EXPIRED.key_pem), "certificate-files", "not PEM, or damaged"),
        (files, (pair().certificate_pem, pair().key_pem), "certificate-files", "key"),
        (files, (OTHER.certificate_pem, OTHER.key_pem), "certificate-files", "was not issued by the CA in"),
        (policies, HEADER, "policy-broken-platform", "is broken, its last good document stays in force: line 3: mode"),
        (policies, "", "policy-broken-platform", 'policy "platform" is broken, it has no effect: line 3: mode'),
        (cluster, 403, "unknown-nodes", "no information about nodes: forbidden"),
        (cluster, 403, "unknown-mpijobs", "no information about mpijobs: forbidden"),
        (cluster, 500, "unknown-nodes", "no information about nodes: server-error"),
        (cluster, 403, "policies-unread", "the policies in ns cannot be read (forbidden"),
    ],
)
async def test_fault_is_a_concern(
    fault: Callable[[Any, Path], Fault], given: Any, name: str, text: str, tmp_path: Path
) -> None:
    readiness = Readiness("serving")
    readiness.passes("serving")
    async with fault(given, tmp_path) as concerns:
        readiness.concerns_of(concerns)
        with suppress(AssertionError, TimeoutError):
            await until(lambda: text in readiness.report())
        (line,) = (line for line in readiness.report().splitlines() if line.startswith(f"[!]{name}: "))
        assert text in line
        assert readiness.ready
    general = name.replace("platform", "NAME").replace("unknown-", "unknown-KIND ").partition(" ")[0]
    assert f"`{general}`" in (ROOT / "docs" / "runbook.md").read_text().partition("## What `/readyz` says")[2]


async def test_kind_that_is_not_installed_is_not_a_concern(tmp_path: Path) -> None:
    async with cluster(404, tmp_path) as concerns:
        await asyncio.sleep(0.5)
        assert not [name for name in concerns() if name.startswith("unknown-")]
