"""Reads the certificates of an installation: stored, trusted by the API server, and served by replicas."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote

from cryptography import x509

from certs import peer, status
from certs.peer import PeerError
from certs.pem import CertificateError, load_certificates
from certs.rotation import RotationSettings
from certs.status import TrustStatus
from certs.store import Bundle
from webhook import PROGRAM
from webhook.api import duration
from webhook.client.calls import Address, Client
from webhook.client.objects import get
from webhook.installation.certificate_store import CertificateStore, rotation
from webhook.installation.doctor.unread import Unread, attempt

SELF_MANAGED: Final = "self-managed"
FILES: Final = "files"
DEFAULT_SECRET: Final = f"{PROGRAM}-ca"
Chain = tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    source: str = ""
    """SELF_MANAGED (the CA is in `secret`), FILES (`secret` is mounted), or empty if unknown."""
    namespace: str = ""
    secret: str = ""
    """The name of the Secret; empty if no Secret is used."""
    data: Mapping[str, bytes] | Unread | None = None
    """The Secret's data; None if the Secret does not exist."""
    bundles: Sequence[Bundle] | Unread = ()
    """The caBundles of the objects that call the service."""
    served: Mapping[Address, Chain] = field(default_factory=dict)
    unreached: Sequence[str] = ()
    """For each address without a certificate, the reason."""
    server_name: str = ""
    """The name by which the API server calls the service."""
    settings: RotationSettings = field(default_factory=lambda: RotationSettings(name=PROGRAM))

    @property
    def ca_secret(self) -> str:
        """The Secret that the service reads and writes; empty if it uses none."""
        return self.secret if self.source == SELF_MANAGED else ""

    @property
    def stored(self) -> Chain:
        """The certificate in the mounted Secret. Replicas serve a changed certificate after one or two minutes."""
        try:
            return load_certificates((self.data or {})["tls.crt"]) if isinstance(self.data, Mapping) else ()
        except (KeyError, CertificateError):
            return ()

    def status(self, now: datetime) -> TrustStatus:
        """The status. If no replica was reached, the certificate in the mounted Secret counts as served."""
        self_managed = self.source == SELF_MANAGED and not isinstance(self.data, Unread)
        return status.describe(
            () if isinstance(self.bundles, Unread) else self.bundles,
            now=now,
            served=list(self.served.values()) or ([self.stored] if self.stored else []),
            server_name=self.server_name,
            settings=self.settings if self_managed else None,
            data=None if isinstance(self.data, Unread) or not self_managed else self.data,
        )


def source(deployment: object, options: Mapping[str, str], ca_secret: str) -> tuple[str, str]:
    """(source, name of the Secret), from the Deployment's options. Without a Deployment, the manifests' values."""
    if name := ca_secret or options.get("--ca-secret", ""):
        return SELF_MANAGED, name
    if isinstance(deployment, Mapping) and "--tls-cert" in options:
        volumes = deployment["spec"]["template"]["spec"].get("volumes") or ()
        mounted = [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]
        return FILES, next(iter(mounted), "")
    return ("", "") if isinstance(deployment, Mapping) else (SELF_MANAGED, DEFAULT_SECRET)


async def read(
    api: Client,
    *,
    namespace: str,
    service: str,
    deployment: object,
    options: Mapping[str, str],
    ca_secret: str,
    addresses: Sequence[Address],
) -> Certificates:
    """Connects to `addresses` for the served certificates. ClusterError if the API server does not answer."""
    origin, secret = source(deployment, options, ca_secret)
    store = CertificateStore(api, namespace=namespace, secret=secret, service=service)
    server_name = f"{service}.{namespace}.svc"
    served, unreached = await _served(addresses, server_name)
    return Certificates(
        source=origin,
        namespace=namespace,
        secret=secret,
        data=await attempt(_data(store)) if secret else None,
        bundles=await attempt(store.read_bundles()),
        served=served,
        unreached=unreached,
        server_name=server_name,
        settings=_settings(options),
    )


async def addresses(api: Client, *, namespace: str, service: object, port: int) -> list[Address]:
    """The addresses of the ready replicas for `port` of the Service; ClusterError if they cannot be read."""
    if not isinstance(service, Mapping):
        return []
    ports = service["spec"].get("ports") or ()
    if external := service["spec"].get("externalName"):
        return [(external, port)]
    path = f"/apis/discovery.k8s.io/v1/namespaces/{quote(namespace, safe='')}/endpointslices"
    name = quote(service["metadata"]["name"], safe="")
    slices = await get(api, f"{path}?labelSelector=kubernetes.io/service-name%3D{name}") or {}
    port_name = next((entry.get("name") or "" for entry in ports if entry["port"] == port), "")
    return [
        (address, endpoint_port["port"])
        for endpoint_slice in slices.get("items") or ()
        for endpoint_port in endpoint_slice.get("ports") or ()
        if (endpoint_port.get("name") or "") == port_name and endpoint_port.get("port")
        for endpoint in endpoint_slice.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
        for address in endpoint["addresses"]
    ]


async def _served(addresses: Sequence[Address], server_name: str) -> tuple[dict[Address, Chain], list[str]]:
    connections = (peer.fetch_chain(host, port, server_name=server_name) for host, port in addresses)
    served: dict[Address, Chain] = {}
    unreached = []
    for address, result in zip(addresses, await asyncio.gather(*connections, return_exceptions=True), strict=True):
        if isinstance(result, PeerError):
            unreached.append(str(result))
        elif isinstance(result, BaseException):
            raise result
        else:
            served[address] = result
    return served, unreached


async def _data(store: CertificateStore) -> Mapping[str, bytes] | None:
    secret = await store.read_secret()
    return None if secret is None else secret.data


def _settings(options: Mapping[str, str]) -> RotationSettings:
    """The times in the options. If they are invalid, no replica starts, and the defaults are returned."""
    times = {"--ca-lifetime": "365d", "--leaf-lifetime": "14d", "--ca-grace": "2m"}
    try:
        return rotation(*(timedelta(seconds=duration.parse(options.get(name, time))) for name, time in times.items()))
    except ValueError:
        return rotation(*(timedelta(seconds=duration.parse(time)) for time in times.values()))
