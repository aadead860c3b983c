"""The certificate that the service serves: one file for each source, all of them a `CertificateSource`.

How certificates are made, stored, renewed and loaded is in `certs`, which knows nothing of this service. Here its
parts are connected to the settings, to the cluster, and to log, metrics and Events.
"""

from webhook.server.certificates.files import FileSource
from webhook.server.certificates.in_memory import InMemorySource
from webhook.server.certificates.self_managed import SelfManagedSource
from webhook.server.certificates.source import CertificateSource
from webhook.server.settings import ServeSettings
from webhook.server.telemetry import Telemetry


def source_for(settings: ServeSettings, telemetry: Telemetry) -> CertificateSource:
    """The source that `settings` ask for."""
    if settings.ca_secret:
        return SelfManagedSource(settings, telemetry)
    if settings.tls_cert and settings.tls_key:
        return FileSource(settings.tls_cert, settings.tls_key, settings, telemetry)
    return InMemorySource(settings, telemetry)
