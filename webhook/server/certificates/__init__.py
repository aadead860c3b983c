"""The sources of the serving certificate. The module of each source has a `CertificateSource`.

This package connects the package `certs` to the settings, the cluster, the log, the metrics and the Events.
"""
# ruff: noqa: PLC0415 - a service has one source, and importing the other sources would slow its start

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
    """Provides the serving certificate and replaces it before it expires."""

    problem: str = "not yet"
    """The reason, on one line, why clients would reject the certificate; empty if they would accept it."""
    ca_pem: bytes | None = None
    """The certificate of a CA that only this process has. Clients of the service need it."""

    @abstractmethod
    def start(self) -> AbstractAsyncContextManager[ServingCertificate]:
        """Provide the certificate, and renew it until the block ends.

        StartError if no certificate is available, ClusterError if a required cluster cannot be used.
        """

    def concerns(self) -> dict[str, str]:
        """Problems that do not prevent serving, by their ids in the runbook."""
        return {}


def source_for(settings: ServeSettings, telemetry: Telemetry) -> CertificateSource:
    if settings.ca_secret:
        from webhook.server.certificates.self_managed import SelfManagedSource

        return SelfManagedSource(settings, telemetry)
    if settings.tls_cert and settings.tls_key:
        from webhook.server.certificates.files import FileSource

        return FileSource(settings.tls_cert, settings.tls_key, settings, telemetry)
    from webhook.server.certificates.in_memory import InMemorySource

    return InMemorySource(settings, telemetry)


class Announcer:
    """Logs and counts notices about certificates. With an `api`, it also writes Events about the object `about`."""

    def __init__(self, api: Client | None, namespace: str, about: Mapping[str, str], telemetry: Telemetry) -> None:
        self._api = api
        self._namespace = namespace
        self._about = about
        self._telemetry = telemetry
        self._tasks: set[asyncio.Task[None]] = set()

    def announce(self, notice: Notice) -> None:
        log = self._telemetry.log.warning if notice.warning else self._telemetry.log.info
        log("certificates", reason=notice.reason, message=notice.message)
        self._telemetry.metrics.add("cert_notices_total", notice.reason)
        if self._api is not None:
            task = asyncio.create_task(self._write_event(self._api, notice))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _write_event(self, api: Client, notice: Notice) -> None:
        with suppress(ClusterError, RuntimeError):  # RuntimeError: the client is closed. The log already has the notice
            await write_event(
                api,
                self._namespace,
                self._about,
                reason=notice.reason,
                message=notice.message,
                kind="Warning" if notice.warning else "Normal",
                key=f"{notice.reason} {notice.message} {socket.gethostname()}",
            )
