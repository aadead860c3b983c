"""A certificate from files that cert-manager, OpenShift or an administrator renews."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from certs.notice import Notice
from certs.reload import FileCertificate
from certs.serving import CertificateError, ServingCertificate
from webhook import PROGRAM
from webhook.client import calls
from webhook.server.background import in_background
from webhook.server.certificates import Announcer, CertificateSource
from webhook.server.settings import ServeSettings, StartError
from webhook.server.telemetry import Telemetry


class FileSource(CertificateSource):
    """Serves a certificate and its key from two files, and loads the files again when they change."""

    def __init__(self, certificate: Path, key: Path, settings: ServeSettings, telemetry: Telemetry) -> None:
        self._certificate = certificate
        self._key = key
        self._settings = settings
        self._telemetry = telemetry
        self._files: FileCertificate | None = None

    @asynccontextmanager
    async def start(self) -> AsyncIterator[ServingCertificate]:
        """StartError if the files cannot be used now."""
        settings = self._settings
        api = await calls.connect(settings.kubeconfig) if settings.in_cluster else None
        try:
            about = {"apiVersion": "v1", "kind": "Service", "name": settings.service or PROGRAM}
            announcer = Announcer(api, settings.policy_namespace, about, self._telemetry)

            def on_notice(notice: Notice) -> None:
                announcer.announce(notice)
                self._update(files.serving, notice.message)

            try:
                files = FileCertificate(
                    self._certificate,
                    self._key,
                    ca=settings.tls_ca,
                    hosts=settings.service_hosts,
                    listener=on_notice,
                )
            except CertificateError as error:
                raise StartError(f"{self._certificate}: {error}") from None
            self._update(files.serving)
            self._files = files
            async with in_background("certificates", files.run, log=self._telemetry.log):
                yield files.serving
        finally:
            if api is not None:
                await api.close()

    def concerns(self) -> dict[str, str]:
        """Problems of the files. The last valid certificate is still served."""
        problem = self._files and self._files.problem
        return {"certificate-files": f"{self._certificate}: {problem}"} if problem else {}

    def _update(self, serving: ServingCertificate, notice: str = "") -> None:
        """With damaged files the service stays ready until the loaded certificate expires."""
        self._telemetry.metrics.set("cert_expiry_timestamp_seconds", serving.not_after.timestamp(), "serving")
        self.problem = "" if serving.not_after > datetime.now(UTC) else notice
