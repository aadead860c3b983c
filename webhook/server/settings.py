"""What `mpijob-webhook serve` takes, and what of it does not go together."""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from certs.settings import RotationSettings
from webhook import PROGRAM
from webhook.client.calls import Address
from webhook.cluster.resource import KUEUE_NAMESPACE
from webhook.installation import certificate_store
from webhook.server.ports import EVERY_ADDRESS


class StartError(Exception):
    """The service cannot start; the message tells its operator what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What `mpijob-webhook serve` takes; times in seconds, port 0 lets the kernel choose.

    With `ca_secret` the service keeps a CA in that Secret of its namespace, and the caBundles of whatever calls the
    Service `service` in step. With `tls_cert` and `tls_key` it serves those files, and what they are replaced by; they
    must lead to `tls_ca`, if that file exists. Else it makes a CA and a certificate in memory; `ca_file` is where it
    writes that CA's certificate. `register` needs that CA, and the cluster of `kubeconfig` (None: as kubectl finds it).
    With a `kubeconfig`, with `register` and in a pod the service follows its cluster: namespaces, and the policy
    ConfigMaps in `policy_namespace`; Kueue's configuration is in `kueue_namespace`.
    """

    kubeconfig: Path | None = None
    listen: Address = ("127.0.0.1", 8443)
    ops_listen: Address = ("127.0.0.1", 8081)
    policy: Path | None = None
    policy_namespace: str = PROGRAM
    kueue_namespace: str = KUEUE_NAMESPACE
    register: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None
    ca_secret: str = ""
    service: str = ""
    ca_lifetime: int = 365 * 86_400
    leaf_lifetime: int = 14 * 86_400
    ca_grace: int = 120
    ca_file: Path | None = None
    drain_seconds: float = 5
    max_in_flight: int = 64
    timeout_seconds: float = 10
    ssh_keys_ready: int = 128
    ssh_keys_rate: float = 1
    remove_keys: bool = False
    log_level: str = "info"

    @property
    def service_hosts(self) -> list[str]:
        """The names by which the API server calls the service; none where its Service is unknown."""
        return [f"{self.service}.{self.policy_namespace}.svc"] if self.service else []

    @property
    def in_cluster(self) -> bool:
        """Whether there is a cluster to follow."""
        return self.kubeconfig is not None or self.register or "KUBERNETES_SERVICE_HOST" in os.environ


def check(settings: ServeSettings) -> None:
    """StartError for settings that do not go together."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise StartError("--tls-cert and --tls-key are only of use together")
    if settings.ca_secret and settings.tls_cert:
        raise StartError("--ca-secret makes its own certificates: leave out --tls-cert and --tls-key")
    if settings.ca_secret and not settings.service:
        raise StartError("--ca-secret needs --service: certificates are for its name")
    if settings.ca_secret:
        rotation(settings)
    if settings.register and (settings.tls_cert or settings.ca_secret):
        raise StartError("--register makes its own certificate: leave out --tls-cert, --tls-key and --ca-secret")
    if settings.register and settings.listen[0] in EVERY_ADDRESS:
        raise StartError("--register needs an address that the API server can reach: --listen HOST:PORT")


def rotation(settings: ServeSettings) -> RotationSettings:
    """StartError for times that cannot work together."""
    try:
        return certificate_store.rotation(
            *(timedelta(seconds=each) for each in (settings.ca_lifetime, settings.leaf_lifetime, settings.ca_grace))
        )
    except ValueError as error:
        options = {"ca_lifetime": "--ca-lifetime", "leaf_lifetime": "--leaf-lifetime", "grace": "--ca-grace"}
        raise StartError(" ".join(options.get(word, word) for word in str(error).split())) from None
