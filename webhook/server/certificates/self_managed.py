"""A certificate from the service's own CA.

Every replica can renew the certificate, and every caBundle trusts the CA.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from certs.rotation import Phase
from certs.self_managed import SelfManaged
from certs.serving import ServingCertificate
from webhook.client import calls
from webhook.installation.certificate_store import CertificateStore
from webhook.server.background import in_background
from webhook.server.certificates import Announcer, CertificateSource
from webhook.server.settings import ServeSettings, rotation
from webhook.server.telemetry import Telemetry


class SelfManagedSource(CertificateSource):
    """Keeps the CA in a Secret in the service's namespace, and the CA's certificate in the service's caBundles."""

    def __init__(self, settings: ServeSettings, telemetry: Telemetry) -> None:
        self._settings = settings
        self._telemetry = telemetry
        self._concerns: dict[str, str] = {}

    @asynccontextmanager
    async def start(self) -> AsyncIterator[ServingCertificate]:
        """Waits without a limit until the caBundles trust the certificate."""
        settings, namespace = self._settings, self._settings.policy_namespace
        self._telemetry.log.info("waiting for the certificate", secret=settings.ca_secret)
        api = await calls.connect(settings.kubeconfig)
        try:
            about = {"apiVersion": "v1", "kind": "Secret", "name": settings.ca_secret}
            keeper = SelfManaged(
                CertificateStore(api, namespace=namespace, secret=settings.ca_secret, service=settings.service),
                settings.service_hosts,
                settings=rotation(settings),
                listener=Announcer(api, namespace, about, self._telemetry).announce,
                after_pass=lambda: self._update(keeper),
            )
            async with in_background("certificates", keeper.run, log=self._telemetry.log):
                yield await keeper.first_certificate()
        finally:
            await api.close()

    def concerns(self) -> dict[str, str]:
        """Problems: a foreign CA in the Secret, caBundles that do not trust the certificate, a failed renewal."""
        return self._concerns

    def _update(self, keeper: SelfManaged) -> None:
        self._concerns = _concerns(keeper)
        self._telemetry.metrics.set("ca_bundles_untrusting", len(keeper.untrusting))
        if keeper.trusted:
            self.problem = ""
        else:
            self.problem = keeper.last_error or f"not trusted yet by {', '.join(keeper.untrusting)}"
        for name, moment in (("serving", keeper.leaf_not_after), ("ca", keeper.ca_not_after)):
            if moment is not None:
                self._telemetry.metrics.set("cert_expiry_timestamp_seconds", moment.timestamp(), name)


def _concerns(keeper: SelfManaged) -> dict[str, str]:
    concerns = {}
    if keeper.last_error:
        concerns["ca-secret" if keeper.phase is Phase.MISSING else "certificates"] = keeper.last_error
    if keeper.foreign_ca is not None:
        concerns["ca-secret"] = (
            f'the CA Secret has the CA "{keeper.foreign_ca}", which this service did not make. '
            "Remove ca.key from the Secret: then the service makes a new CA"
        )
    if keeper.untrusting:
        reason = keeper.last_error or "no reason known"
        concerns["ca-bundle"] = f"not trusted by {', '.join(keeper.untrusting)}, whose calls fail: {reason}"
    return concerns
