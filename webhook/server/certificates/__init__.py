"""The certificate that the service serves: one file for each source, all of them a `CertificateSource`.

How certificates are made, stored, renewed and loaded is in `certs`, which knows nothing of this service. Here its
parts are connected to the settings, to the cluster, and to log, metrics and Events.
"""
# ruff: noqa: PLC0415 - a service has one source, and need not wait for the others at its start

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress

from certs.notice import Notice
from certs.serving import ServingCertificate
from webhook.client.calls import Client, ClusterError
from webhook.client.objects import write_event
from webhook.server.settings import ServeSettings
from webhook.server.telemetry import Telemetry


class CertificateSource(ABC):
    """Provides the certificate to serve, and replaces it in time; as cert-manager's `pkg/server/tls` has it."""

    problem: str = "not yet"
    """Why clients would refuse the certificate, on one line; empty when they would not."""
    ca_pem: bytes | None = None
    """The certificate of a CA that was made for this process alone; whoever calls the service has to be given it."""

    @abstractmethod
    def start(self) -> AbstractAsyncContextManager[ServingCertificate]:
        """The certificate, kept up to date until the block ends.

        StartError when there can be none, ClusterError when a cluster is needed and cannot be used.
        """

    def concerns(self) -> dict[str, str]:
        """By its name in the runbook, what is wrong that does not keep the certificate from being served."""
        return {}


def source_for(settings: ServeSettings, telemetry: Telemetry) -> CertificateSource:
    """The source that `settings` ask for."""
    if settings.ca_secret:
        from webhook.server.certificates.self_managed import SelfManagedSource

        return SelfManagedSource(settings, telemetry)
    if settings.tls_cert and settings.tls_key:
        from webhook.server.certificates.files import FileSource

        return FileSource(settings.tls_cert, settings.tls_key, settings, telemetry)
    from webhook.server.certificates.in_memory import InMemorySource

    return InMemorySource(settings, telemetry)


class Announcer:
    """Reports each notice; Events are about the object `about` in `namespace`, and there are none without `api`."""

    def __init__(self, api: Client | None, namespace: str, about: Mapping[str, str], telemetry: Telemetry) -> None:
        self._api = api
        self._namespace = namespace
        self._about = about
        self._telemetry = telemetry
        self._tasks: set[asyncio.Task[None]] = set()

    def announce(self, notice: Notice) -> None:
        """Log and count the notice; its Event is written in the background."""
        log = self._telemetry.log.warning if notice.warning else self._telemetry.log.info
        log("certificates", reason=notice.reason, message=notice.message)
        self._telemetry.metrics.add("cert_notices_total", notice.reason)
        if self._api is not None:
            task = asyncio.create_task(self._write_event(self._api, notice))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _write_event(self, api: Client, notice: Notice) -> None:
        with suppress(ClusterError, RuntimeError):  # of a client that is closed; the notice is in the log
            await write_event(
                api,
                self._namespace,
                self._about,
                reason=notice.reason,
                message=notice.message,
                kind="Warning" if notice.warning else "Normal",
                key=f"{notice.reason} {notice.message} {socket.gethostname()}",
            )
