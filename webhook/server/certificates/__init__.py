"""The certificate that the service serves: one file for each source, all of them a `CertificateSource`.

How certificates are made, stored, renewed and loaded is in `certs`, which knows nothing of this service. Here its
parts are connected to the settings, to the cluster, and to log, metrics and Events.
"""
# ruff: noqa: PLC0415 - a service has one source, and need not wait for the others at its start

from webhook.server.certificates.source import CertificateSource
from webhook.server.settings import ServeSettings
from webhook.server.telemetry import Telemetry


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
