"""Stores the CA of `certs.self_managed` in a Secret, and publishes it in the caBundles of the webhook configurations.

This module writes only the Secret's data and the fields `caBundle`. The tool that applies the manifests, such as a
GitOps tool, owns all other fields.
"""

import time
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from math import inf
from typing import Any, Final
from urllib.parse import quote

from certs.rotation import RotationSettings
from certs.store import Bundle, Conflict, Secret, StoreError
from webhook import PROGRAM
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import get
from webhook.installation import registration

# Every replica reads the Secret and the caBundles at this interval. An overwritten caBundle can block jobs until
# the next read.
INTERVAL = timedelta(seconds=15)


def rotation(ca_lifetime: timedelta, leaf_lifetime: timedelta, grace: timedelta) -> RotationSettings:
    """The settings of `certs.self_managed`; ValueError if the times contradict each other."""
    interval = min(INTERVAL, leaf_lifetime / 10)
    return RotationSettings(
        name=PROGRAM, ca_lifetime=ca_lifetime, leaf_lifetime=leaf_lifetime, grace=grace, interval=interval
    )


CRD: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mpijobs.kubeflow.org"
_GONE_OR_CHANGED: Final = {404, 409}
# Seconds until a denied object is requested again. Each denial is a line in the cluster's audit log.
DENIED_PAUSE: Final = 3600.0


class CertificateStore:
    """A `certs.store.Store`: the Secret in `namespace`, and the caBundles of objects that call the Service."""

    def __init__(
        self,
        api: Client,
        *,
        namespace: str,
        secret: str,
        service: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._secret = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets/{quote(secret, safe='')}"
        self._service = (namespace, service)
        self._clock = clock
        self._denied_until = -inf

    async def read_secret(self) -> Secret | None:
        secret = await self._get(self._secret)
        if secret is None:
            return None
        data = {name: _decoded(text) for name, text in (secret.get("data") or {}).items()}
        return Secret(data, secret["metadata"]["resourceVersion"], self._api.server_time)

    async def write_secret(self, data: Mapping[str, bytes], resource_version: str) -> None:
        """Replaces the data of the Secret; Conflict if the stored version is not `resource_version`."""
        operations: list[dict[str, Any]] = [
            {"op": "add", "path": "/metadata/resourceVersion", "value": resource_version},
            {"op": "add", "path": "/data", "value": {name: _text(value) for name, value in data.items()}},
        ]
        await self._patch(self._secret, operations)

    async def read_bundles(self) -> Sequence[Bundle]:
        """The caBundles of each object that calls the Service."""
        bundles = []
        for path in _paths():
            if path == CRD and self._clock() < self._denied_until:
                continue
            document = await self._get(path, forbidden_is_absent=path == CRD)
            if document is None:
                continue
            pems = tuple(_decoded(config.get("caBundle")) for _, config in self._ours(document))
            if pems:
                bundles.append(Bundle(_name(path), pems, document["metadata"]["resourceVersion"]))
        return bundles

    async def write_bundle(self, bundle: Bundle, pem: bytes) -> None:
        """Sets each caBundle of the object; Conflict if the stored version is not `bundle.resource_version`."""
        path = next(path for path in _paths() if _name(path) == bundle.name)
        document = await self._get(path)
        if document is None or document["metadata"]["resourceVersion"] != bundle.resource_version:
            raise Conflict(f"{bundle.name} has changed")
        operations = [{"op": "add", "path": "/metadata/resourceVersion", "value": bundle.resource_version}]
        operations += [
            {"op": "add", "path": f"{pointer}/caBundle", "value": _text(pem)} for pointer, _ in self._ours(document)
        ]
        await self._patch(path, operations)

    def _ours(self, document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(JSON pointer, value) of each clientConfig that calls the Service."""
        hooks = document.get("webhooks") or ()
        configs = [(f"/webhooks/{index}/clientConfig", hook["clientConfig"]) for index, hook in enumerate(hooks)]
        conversion = ((document.get("spec") or {}).get("conversion") or {}).get("webhook") or {}
        configs.append(("/spec/conversion/webhook/clientConfig", conversion.get("clientConfig") or {}))
        for pointer, config in configs:
            service = config.get("service") or {}
            if (service.get("namespace"), service.get("name")) == self._service:
                yield pointer, config

    async def _get(self, path: str, *, forbidden_is_absent: bool = False) -> dict[str, Any] | None:
        try:
            return await get(self._api, path)
        except ClusterError as error:
            if forbidden_is_absent and isinstance(error, ApiError) and error.status == 403:
                self._denied_until = self._clock() + DENIED_PAUSE
                return None
            raise StoreError(str(error)) from None

    async def _patch(self, path: str, operations: list[dict[str, Any]]) -> None:
        try:
            await self._api.request("PATCH", path, operations)
        except ApiError as error:
            if error.status in _GONE_OR_CHANGED:
                raise Conflict(str(error)) from None
            raise StoreError(str(error)) from None
        except ClusterError as error:
            raise StoreError(str(error)) from None


def _paths() -> tuple[str, ...]:
    configurations = (f"{registration.API}/{plural}/{registration.NAME}" for plural in registration.RESOURCES.values())
    return (*configurations, CRD)


def _name(path: str) -> str:
    _, plural, name = path.rsplit("/", 2)
    return f"{plural}/{name}"


def _decoded(text: str | None) -> bytes:
    """The decoded bytes; empty if the text is not Base64."""
    try:
        return b64decode(text or "", validate=True)
    except (Base64Error, ValueError):
        return b""


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
