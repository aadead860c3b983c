"""The certificate that the service serves: one file for each source, all of them a `CertificateSource`.

How certificates are made, stored, renewed and loaded is in `certs`, which knows nothing of this service. Here its
parts are connected to the settings, to the cluster, and to log, metrics and Events.
"""
# ruff: noqa: PLC0415 - a service has one source, and need not wait for the others at its start

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from certs.serving import ServingCertificate
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
