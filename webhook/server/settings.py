"""The settings of `mpijob-webhook serve`, and the checks for contradictory settings."""

import os
from collections.abc import Set
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from pathlib import Path

from certs.rotation import RotationSettings
from webhook import PROGRAM
from webhook.client.calls import Address
from webhook.cluster.resource import KUEUE_NAMESPACE
from webhook.installation import certificate_store
from webhook.kit import optional_parts
from webhook.server.ports import EVERY_ADDRESS


class StartError(Exception):
    """The service cannot start. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The options of `mpijob-webhook serve`. Times are in seconds. Port 0 lets the kernel choose one.

    The certificate is issued by the CA in the Secret `ca_secret`, is read from `tls_cert` and `tls_key`, or is made in
    memory. The service connects to a cluster if `kubeconfig` or `register` is set, or if it runs in a pod.
    """

    kubeconfig: Path | None = None
    """None means the pod's ServiceAccount, or kubectl's default outside of a pod."""
    listen: Address = ("127.0.0.1", 8443)
    """The address of the port for reviews."""
    ops_listen: Address = ("127.0.0.1", 8081)
    """The address of the port with health and metrics."""
    policy: Path | None = None
    """A policy file. Policies in ConfigMaps override it."""
    policy_namespace: str = PROGRAM
    """The service's namespace, which contains the policy ConfigMaps."""
    kueue_namespace: str = KUEUE_NAMESPACE
    """The namespace of Kueue's configuration."""
    register: bool = False
    """Install the webhook configurations while the service runs. Requires that the CA is made in memory."""
    tls_cert: Path | None = None
    """A certificate file that cert-manager or an administrator renews. It is read again after each change."""
    tls_key: Path | None = None
    tls_ca: Path | None = None
    """The CA that must have issued `tls_cert`. Without this file the issuer is not checked."""
    ca_secret: str = ""
    """The Secret of the service's own CA. The service updates the caBundles for `service`."""
    service: str = ""
    """The Service in front of the replicas."""
    ca_lifetime: int = 365 * 86_400
    """The lifetime of the CA in `ca_secret`."""
    leaf_lifetime: int = 14 * 86_400
    """The lifetime of the certificates that this CA issues."""
    ca_grace: int = 120
    """Seconds between the publication of a new CA in all caBundles and the first certificate that it issues."""
    ca_file: Path | None = None
    """The file to which the certificate of the CA in memory is written."""
    client_ca: Path | None = None
    """The CA (PEM) that must have issued the client certificates of reviews."""
    client_names: tuple[str, ...] = ()
    """Accepted clients. A client's certificate must have one of these names as common name or as DNS name."""
    drain_seconds: float = 5
    """Seconds in which the stopping service still answers and closes connections."""
    max_in_flight: int = 512
    """Reviews that may wait for the cluster. Further reviews that need the cluster get an error."""
    timeout_seconds: float = 10
    """The timeout of a review, unless the client requests a shorter timeout."""
    ssh_keys_ready: int = 128
    """Spare SSH key pairs."""
    ssh_keys_rate: float = 1
    """Key pairs made each second, at most."""
    remove_keys: bool = False
    options: Set[str] = frozenset()
    """Options that switch optional parts on, such as `--conversion`."""
    log_level: str = "info"
    """debug, info, warning or error."""

    @property
    def service_hosts(self) -> list[str]:
        """The host names that the API server uses for the service; empty if its Service is unknown."""
        return [f"{self.service}.{self.policy_namespace}.svc"] if self.service else []

    @property
    def in_cluster(self) -> bool:
        return self.kubeconfig is not None or self.register or "KUBERNETES_SERVICE_HOST" in os.environ


def check(settings: ServeSettings) -> None:
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise StartError("--tls-cert and --tls-key must be used together")
    if settings.ca_secret and settings.tls_cert:
        raise StartError("--ca-secret makes its own certificates: leave out --tls-cert and --tls-key")
    if settings.ca_secret and not settings.service:
        raise StartError("--ca-secret needs --service: certificates are for its name")
    if bool(settings.client_ca) != bool(settings.client_names):
        raise StartError(
            "--client-ca and --client-name must be used together: a CA issues certificates to many clients"
        )
    for part in optional_parts.of(settings.options):
        for option, (other, why) in product(part.options.keys() & settings.options, part.excludes.items()):
            if getattr(settings, other):
                raise StartError(f"{option} excludes --{other.replace('_', '-')}: {why}")
    if settings.ca_secret:
        rotation(settings)
    if settings.register and (settings.tls_cert or settings.ca_secret):
        raise StartError("--register makes its own certificate: leave out --tls-cert, --tls-key and --ca-secret")
    if settings.register and settings.listen[0] in EVERY_ADDRESS:
        raise StartError("--register needs an address that the API server can reach: --listen HOST:PORT")


def rotation(settings: ServeSettings) -> RotationSettings:
    """StartError if the times contradict each other."""
    try:
        times = (settings.ca_lifetime, settings.leaf_lifetime, settings.ca_grace)
        return certificate_store.rotation(*(timedelta(seconds=seconds) for seconds in times))
    except ValueError as error:
        options = {"ca_lifetime": "--ca-lifetime", "leaf_lifetime": "--leaf-lifetime", "grace": "--ca-grace"}
        raise StartError(" ".join(options.get(word, word) for word in str(error).split())) from None
