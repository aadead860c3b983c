"""What the service asks of every source of certificates, as cert-manager's `pkg/server/tls` has it."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from certs.serving import ServingCertificate


class CertificateSource(ABC):
    """Provides the certificate to serve, and replaces it in time."""

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
