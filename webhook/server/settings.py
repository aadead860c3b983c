"""The settings of `mpijob-webhook serve`, and which of them contradict each other."""

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
    """The service cannot start; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The options of `mpijob-webhook serve`. Times are in seconds; port 0 lets the kernel choose one.

    The certificate comes from the Secret `ca_secret`, or from `tls_cert` and `tls_key`, or is made in memory. The
    service follows a cluster with `kubeconfig`, with `register`, and in a pod.
    """

    kubeconfig: Path | None = None
    """None: the pod's ServiceAccount, or outside of a pod kubectl's default."""
    listen: Address = ("127.0.0.1", 8443)
    """For reviews."""
    ops_listen: Address = ("127.0.0.1", 8081)
    """For health and metrics."""
    policy: Path | None = None
    """A policy file; the ConfigMaps' policies are on top of it."""
    policy_namespace: str = PROGRAM
    """The service's own namespace, which has the policy ConfigMaps."""
    kueue_namespace: str = KUEUE_NAMESPACE
    """Where Kueue's configuration is."""
    register: bool = False
    """Install the webhook configurations while the service runs; needs the CA that is made in memory."""
    tls_cert: Path | None = None
    """A certificate that is renewed elsewhere: the file is read again whenever it changes."""
    tls_key: Path | None = None
    """The key of `tls_cert`."""
    tls_ca: Path | None = None
    """The CA that must have issued `tls_cert`; not checked while this file does not exist."""
    ca_secret: str = ""
    """The Secret of the service's own CA. The caBundles that point to `service` are kept in step with it."""
    service: str = ""
    """The name of the Service in front of the replicas."""
    ca_lifetime: int = 365 * 86_400
    """For the CA in `ca_secret`."""
    leaf_lifetime: int = 14 * 86_400
    """For the certificates that this CA issues."""
    ca_grace: int = 120
    """How long a new CA waits, after every caBundle has it, before it issues certificates."""
    ca_file: Path | None = None
    """Where the certificate of the CA in memory is written."""
    client_ca: Path | None = None
    """The CA (PEM) that must have issued the client certificates of reviews."""
    client_names: tuple[str, ...] = ()
    """Accepted client certificates: a common name, or a DNS name in the certificate."""
    drain_seconds: float = 5
    """How long connections are closed at the end before the service stops listening."""
    max_in_flight: int = 512
    """Reviews that may wait for the cluster at once. Further ones get an error; reviews that need no cluster are
    answered.
    """
    timeout_seconds: float = 10
    """For a review, unless the client requests less."""
    ssh_keys_ready: int = 128
    """SSH key pairs to make ahead."""
    ssh_keys_rate: float = 1
    """Maximum number of key pairs made each second."""
    remove_keys: bool = False
    """Delete the SSH keys of jobs that have ended."""
    options: Set[str] = frozenset()
    """Those that switch optional parts on, such as `--conversion`."""
    log_level: str = "info"
    """debug, info, warning or error."""

    @property
    def service_hosts(self) -> list[str]:
        """The names by which the API server calls the service; empty if its Service is unknown."""
        return [f"{self.service}.{self.policy_namespace}.svc"] if self.service else []

    @property
    def in_cluster(self) -> bool:
        """Whether the service follows a cluster."""
        return self.kubeconfig is not None or self.register or "KUBERNETES_SERVICE_HOST" in os.environ


def check(settings: ServeSettings) -> None:
    """StartError for settings that contradict each other."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise StartError("--tls-cert and --tls-key are only of use together")
    if settings.ca_secret and settings.tls_cert:
        raise StartError("--ca-secret makes its own certificates: leave out --tls-cert and --tls-key")
    if settings.ca_secret and not settings.service:
        raise StartError("--ca-secret needs --service: certificates are for its name")
    if bool(settings.client_ca) != bool(settings.client_names):
        raise StartError("--client-ca and --client-name are only of use together: a CA issues for many")
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
    """When certificates are renewed; StartError for times that do not fit together."""
    try:
        return certificate_store.rotation(
            *(timedelta(seconds=each) for each in (settings.ca_lifetime, settings.leaf_lifetime, settings.ca_grace))
        )
    except ValueError as error:
        options = {"ca_lifetime": "--ca-lifetime", "leaf_lifetime": "--leaf-lifetime", "grace": "--ca-grace"}
        raise StartError(" ".join(options.get(word, word) for word in str(error).split())) from None
