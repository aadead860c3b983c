"""The kinds that are watched, and what is kept of their objects."""

import msgspec

from webhook.api.volume import Claim
from webhook.cluster.store import Kind, by_name, by_namespace
from webhook.cluster.view import Namespace, PersistentVolumeClaim, PriorityClass, WorkloadPriorityClass
from webhook.policy.store import KEY, LABEL, Source


class _Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata


_decoder = msgspec.json.Decoder(_Object)


def _namespace(data: msgspec.Raw) -> Namespace:
    metadata = _decoder.decode(data).metadata
    return Namespace(metadata.name, metadata.labels or {})


NAMESPACES: Kind[str, Namespace] = Kind("namespaces", "/api/v1/namespaces", key=by_name, project=_namespace)


def _priority_class(data: msgspec.Raw) -> PriorityClass:
    return PriorityClass(_decoder.decode(data).metadata.name)


PRIORITY_CLASSES: Kind[str, PriorityClass] = Kind(
    "priorityclasses", "/apis/scheduling.k8s.io/v1/priorityclasses", key=by_name, project=_priority_class
)


def _workload_priority_class(data: msgspec.Raw) -> WorkloadPriorityClass:
    return WorkloadPriorityClass(_decoder.decode(data).metadata.name)


# Kueue serves the first since 0.15, and only the second before that.
WORKLOAD_PRIORITY_CLASSES: tuple[Kind[str, WorkloadPriorityClass], ...] = tuple(
    Kind(
        f"workloadpriorityclasses-{version}",
        f"/apis/kueue.x-k8s.io/{version}/workloadpriorityclasses",
        key=by_name,
        project=_workload_priority_class,
    )
    for version in ("v1beta2", "v1beta1")
)


class _NamespacedMetadata(msgspec.Struct):
    name: str
    namespace: str


class _Namespaced(msgspec.Struct):
    metadata: _NamespacedMetadata


_claims = msgspec.json.Decoder(Claim)
_namespaced = msgspec.json.Decoder(_Namespaced)


def _claim(data: msgspec.Raw) -> PersistentVolumeClaim:
    metadata = _namespaced.decode(data).metadata
    return PersistentVolumeClaim(metadata.namespace, metadata.name, _claims.decode(data).storage_class)


CLAIMS: Kind[tuple[str, str], PersistentVolumeClaim] = Kind(
    "persistentvolumeclaims", "/api/v1/persistentvolumeclaims", key=by_namespace, project=_claim
)


class _ConfigMapMetadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    resource_version: str = ""


class _ConfigMap(msgspec.Struct):
    metadata: _ConfigMapMetadata
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
