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
from webhook.kit import parts
from webhook.server.ports import EVERY_ADDRESS


class StartError(Exception):
    """The service cannot start; the message tells its operator what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What `mpijob-webhook serve` takes. Times are in seconds; port 0 lets the kernel choose one.

    The certificate comes from the Secret `ca_secret`, or from `tls_cert` and `tls_key`, or is made in memory.
    The service follows a cluster with `kubeconfig`, with `register`, and in a pod.
    """

    kubeconfig: Path | None = None
    """Leads to the cluster. None: the pod's ServiceAccount, or outside of a pod what kubectl would take."""
    listen: Address = ("127.0.0.1", 8443)
    """Where reviews arrive."""
    ops_listen: Address = ("127.0.0.1", 8081)
    """Where health and metrics are."""
    policy: Path | None = None
    """A policy file; the ConfigMaps' policies are on top of it."""
    policy_namespace: str = PROGRAM
    """The service's own namespace, in which the policy ConfigMaps are."""
    kueue_namespace: str = KUEUE_NAMESPACE
    """Where Kueue's configuration is."""
    register: bool = False
    """Install the webhook configurations while the service runs; needs the CA that is made in memory."""
    tls_cert: Path | None = None
    """A certificate that something else renews: the file is read again whenever it changes."""
    tls_key: Path | None = None
    """The key of `tls_cert`."""
    tls_ca: Path | None = None
    """The CA that has to have issued `tls_cert`; not checked while this file does not exist."""
    ca_secret: str = ""
    """The Secret in which the service keeps a CA of its own; caBundles that lead to `service` are kept in step."""
    service: str = ""
    """The name of the Service in front of the replicas."""
    ca_lifetime: int = 365 * 86_400
    """Of the CA in `ca_secret`."""
    leaf_lifetime: int = 14 * 86_400
    """Of the certificates that this CA issues."""
    ca_grace: int = 120
    """How long a new CA waits, after every caBundle has it, before it issues certificates."""
    ca_file: Path | None = None
    """Where the certificate of the CA in memory is written."""
    client_ca: Path | None = None
    """The CA (PEM) that has to have issued the certificate of whoever sends reviews."""
    client_names: tuple[str, ...] = ()
    """Whose certificate it may be: a common name, or a DNS name in it."""
    drain_seconds: float = 5
    """How long clients are sent away at the end, before the service stops listening."""
    max_in_flight: int = 512
    """Reviews that wait for the cluster at once; any more are refused, and those that need no cluster go on."""
    timeout_seconds: float = 10
    """For a review, where the client does not ask for less."""
    ssh_keys_ready: int = 128
    """SSH key pairs that are made ahead."""
    ssh_keys_rate: float = 1
    """How many of them are made each second, at most."""
    remove_keys: bool = False
    """Delete the SSH keys of jobs that have ended."""
    options: Set[str] = frozenset()
    """Those that switch optional parts on, such as `--conversion`."""
    log_level: str = "info"
    """debug, info, warning or error."""

    @property
    def service_hosts(self) -> list[str]:
        """The names by which the API server calls the service; none where its Service is unknown."""
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
    for part in parts.of(settings.options):
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
    """When certificates are renewed; StartError for times that cannot work together."""
    try:
        return certificate_store.rotation(
            *(timedelta(seconds=each) for each in (settings.ca_lifetime, settings.leaf_lifetime, settings.ca_grace))
        )
    except ValueError as error:
        options = {"ca_lifetime": "--ca-lifetime", "leaf_lifetime": "--leaf-lifetime", "grace": "--ca-grace"}
        raise StartError(" ".join(options.get(word, word) for word in str(error).split())) from None
