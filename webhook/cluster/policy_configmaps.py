"""The ConfigMaps that hold policies, as a watch reads them."""

import msgspec

from webhook.cluster.store import Kind, by_name
from webhook.policy.store import KEY, LABEL, Source


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    resource_version: str = ""


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


_configmaps = msgspec.json.Decoder(_ConfigMap)


def _policy(data: msgspec.Raw) -> Source:
    configmap = _configmaps.decode(data)
    metadata = configmap.metadata
    return Source(metadata.name, metadata.uid, metadata.resource_version, (configmap.data or {}).get(KEY))


def policies(namespace: str) -> Kind[str, Source]:
    """The policy ConfigMaps of a namespace."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return Kind("policies", path, key=by_name, project=_policy, label_selector=f"{LABEL}=true")
