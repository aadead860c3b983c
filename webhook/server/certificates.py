"""The certificate that the service serves: from files, from the CA Secret, or made in memory for development."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from certs.authority import Authority
from certs.files import FileCertificate
from certs.notice import Notice
from certs.self_managed import SelfManaged
from certs.serving import CertificateError, ServingCertificate
from certs.settings import RotationSettings
from webhook.client import calls, wire
from webhook.client.calls import Client, ClusterError
from webhook.installation.certificate_store import NAME, CertificateStore
from webhook.server import events
from webhook.server.ops import Readiness
from webhook.server.telemetry import Telemetry

CHECK = "certificate"
"""Its name among the checks of readiness."""
# Nobody renews the certificate that is made in memory: it is for development, and new at every start.
DEVELOPMENT_LIFETIME = timedelta(days=365)
RESTART_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAddress:
    """Whose certificates these are: the Service in front of the replicas, in `namespace`; `service` may be empty."""

    namespace: str
    service: str

    @property
    def hosts(self) -> list[str]:
        """The names by which the API server calls; none where no Service is known."""
        return [f"{self.service}.{self.namespace}.svc"] if self.service else []


@asynccontextmanager
async def self_managed(
    site: ServiceAddress,
    *,
    secret: str,
    settings: RotationSettings,
    kubeconfig: Path | None,
    readiness: Readiness,
    telemetry: Telemetry,
) -> AsyncIterator[ServingCertificate]:
    """A certificate of the CA in `secret`, trusted by every caBundle from the start; renewed until the block ends.

    Waits for the cluster as long as it takes; ClusterError when there is no usable configuration.
    """
    api = await calls.connect(kubeconfig)
    try:
        about = {"apiVersion": "v1", "kind": "Secret", "name": secret}
        announcer = _Announcer(api, site.namespace, about, telemetry)

        def note() -> None:
            if keeper.trusted:
                readiness.passes(CHECK)
            else:
                readiness.fails(CHECK, keeper.last_error or f"not trusted yet by {', '.join(keeper.untrusting)}")
            for name, moment in (("serving", keeper.leaf_not_after), ("ca", keeper.ca_not_after)):
                if moment is not None:
                    telemetry.cert_not_after.labels(name).set(moment.timestamp())

        keeper = SelfManaged(
            CertificateStore(api, namespace=site.namespace, secret=secret, service=site.service),
            site.hosts,
            settings=settings,
            listener=announcer.tell,
            after_pass=note,
        )
        async with _in_background(keeper.run, telemetry):
            yield await keeper.first_certificate()
    finally:
        await api.close()


@asynccontextmanager
async def from_files(
    certificate: Path,
    key: Path,
    *,
    ca: Path | None,
    site: ServiceAddress,
    kubeconfig: Path | None,
    in_cluster: bool,
    readiness: Readiness,
    telemetry: Telemetry,
) -> AsyncIterator[ServingCertificate]:
    """The pair in two files and its successors, until the block ends; CertificateError when it cannot be served now."""
    api = await calls.connect(kubeconfig) if in_cluster else None
    try:
        about = {"apiVersion": "v1", "kind": "Service", "name": site.service or NAME}
        announcer = _Announcer(api, site.namespace, about, telemetry)

        def tell(notice: Notice) -> None:
            announcer.tell(notice)
            telemetry.cert_not_after.labels("serving").set(files.serving.not_after.timestamp())
            if files.serving.not_after > datetime.now(UTC):
                readiness.passes(CHECK)
            else:
                readiness.fails(CHECK, notice.message)

        files = FileCertificate(certificate, key, ca=ca, hosts=site.hosts, listener=tell)
        telemetry.cert_not_after.labels("serving").set(files.serving.not_after.timestamp())
        readiness.passes(CHECK)
        async with _in_background(files.run, telemetry):
            yield files.serving
    finally:
        if api is not None:
            await api.close()


def in_memory(
    host: str, *, every_address: bool, ca_file: Path | None, telemetry: Telemetry
) -> tuple[ServingCertificate, bytes]:
    """A certificate for `host` and the CA that signed it, for development; OSError if `ca_file` cannot be written."""
    authority = Authority(NAME, lifetime=DEVELOPMENT_LIFETIME)
    hosts = ["localhost", "127.0.0.1", "::1", socket.gethostname()] if every_address else [host]
    pair = authority.issue(hosts, lifetime=DEVELOPMENT_LIFETIME)
    telemetry.cert_not_after.labels("ca").set(authority.not_after.timestamp())
    telemetry.cert_not_after.labels("serving").set(pair.not_after.timestamp())
    if ca_file is not None:
        ca_file.write_bytes(authority.certificate_pem)
    hint = str(ca_file) if ca_file else "give --ca-file FILE to have it written"
    telemetry.log.info("certificate made in memory", hosts=hosts, ca=hint)
    return ServingCertificate(pair.certificate_pem, pair.key_pem), authority.certificate_pem


class _Announcer:
    """Puts what the keepers of certificates tell into log, metrics and Events."""

    def __init__(self, api: Client | None, namespace: str, about: dict[str, str], telemetry: Telemetry) -> None:
        self._api = api
        self._namespace = namespace
        self._about = about
        self._telemetry = telemetry
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, notice: Notice) -> None:
        """Pass the notice on; an Event takes a moment, and may fail."""
        log = self._telemetry.log.warning if notice.warning else self._telemetry.log.info
        log("certificates", reason=notice.reason, message=notice.message)
        self._telemetry.cert_notices.labels(notice.reason).inc()
        if self._api is not None:
            task = asyncio.create_task(self._announce(self._api, notice))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _announce(self, api: Client, notice: Notice) -> None:
        body = events.event(
            self._namespace,
            self._about,
            reason=notice.reason,
            message=notice.message,
            kind="Warning" if notice.warning else "Normal",
            key=f"{notice.reason} {notice.message} {socket.gethostname()}",
        )
        with suppress(ClusterError, RuntimeError):  # it is in the log; told before (conflict), or the client is closed
            await api.request("POST", f"/api/v1/namespaces/{self._namespace}/events", body)


@asynccontextmanager
async def _in_background(work: Callable[[], Coroutine[Any, Any, object]], telemetry: Telemetry) -> AsyncIterator[None]:
    """`work` goes on until the block ends, also after a fault of ours."""

    async def again_and_again() -> None:
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - without it, certificates would expire and nobody know why
                telemetry.log.error("certificates", fault=wire.place(error))  # noqa: TRY400 - no text of objects
            await asyncio.sleep(RESTART_SECONDS)

    task = asyncio.create_task(again_and_again())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


__all__ = ["CHECK", "CertificateError", "ServiceAddress", "from_files", "in_memory", "self_managed"]
