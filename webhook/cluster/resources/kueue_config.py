"""Kueue's configuration, in the ConfigMap that Kueue's manager reads when it starts.

The manager may also get feature gates as command-line flags, which the service cannot see.
"""

from typing import Annotated, Any, Final

import msgspec

from webhook.api import yaml
from webhook.api.labels import Selector
from webhook.cluster.resource import WatchedPlace, Wire, namespaced

NAME: Final = "kueue-manager-config"
KEY: Final = "controller_manager_config.yaml"
GROUP: Final = "config.kueue.x-k8s.io/"

_DEFAULT_FRAMEWORKS: Final = ["batch/job"]


class KueueConfig(msgspec.Struct, frozen=True):
    """The settings in Kueue's configuration that affect jobs."""

    namespace: str
    frameworks: frozenset[str]
    namespaces: Selector
    selector_holds: bool | None
    """True if Kueue ignores all jobs in namespaces that `namespaces` does not select.

    False if Kueue ignores only those of these jobs that have no queue, None if this depends on Kueue's version.
    """
    manages_without_queue: bool
    topology_aware: bool | None
    """Whether topology-aware scheduling is on; None if this depends on Kueue's version."""
    excluded_prefixes: tuple[str, ...]
    """Kueue ignores resources whose names have one of these prefixes."""
    transformed: frozenset[str]
    """Resources that Kueue counts as other resources."""
    ignores_undeclared: bool
    """Whether Kueue ignores resources for which a ClusterQueue has no quota."""
    maps_devices: bool
    """Whether Kueue may count an extended resource under another name."""

    def leaves_out(self, resource: str) -> bool:
        """False only if Kueue certainly counts the resource under this name."""
        is_mapped = self.maps_devices and "/" in resource
        return is_mapped or resource in self.transformed or resource.startswith(self.excluded_prefixes)


class _Integrations(msgspec.Struct):
    frameworks: list[str] | None = None


class _Transformation(msgspec.Struct):
    input: str


class _Resources(msgspec.Struct, rename="camel"):
    exclude_resource_prefixes: list[str] | None = None
    transformations: list[_Transformation] | None = None
    quota_check_strategy: str | None = None
    device_class_mappings: list[object] | None = None


class _Configuration(msgspec.Struct, rename="camel"):
    api_version: Annotated[str, msgspec.Meta(pattern=f"^{GROUP}")]
    namespace: str | None = None
    integrations: _Integrations | None = None
    managed_jobs_namespace_selector: object = None
    manage_jobs_without_queue_name: bool = False
    resources: _Resources | None = None
    feature_gates: dict[str, bool] | None = None


class _Data(msgspec.Struct, omit_defaults=True):
    config: str | None = msgspec.field(default=None, name=KEY)


class _ConfigMap(Wire):
    data: _Data | None = None


def _record(decoded: _ConfigMap) -> KueueConfig | None:
    """None for an unrelated ConfigMap; ValueError for a configuration that cannot be read."""
    if decoded.data is None or decoded.data.config is None:
        return None
    documents: list[Any] = yaml.load_all(decoded.data.config)
    if len(documents) != 1:
        raise ValueError(f"{KEY} has {len(documents)} documents")
    try:
        config = msgspec.convert(documents[0], _Configuration)
    except msgspec.ValidationError as error:
        raise ValueError(f"{KEY}: {error}") from None
    # Both feature gates are on by default in releases with v1beta2, and in some releases with only v1beta1.
    default = True if config.api_version == f"{GROUP}v1beta2" else None
    gates = config.feature_gates or {}
    resources = config.resources or _Resources()
    selector = config.managed_jobs_namespace_selector
    return KueueConfig(
        namespace=decoded.metadata.namespace,
        frameworks=frozenset((config.integrations and config.integrations.frameworks) or _DEFAULT_FRAMEWORKS),
        namespaces=_all_except("kube-system", config.namespace or decoded.metadata.namespace)
        if selector is None
        else Selector.parse(selector),
        selector_holds=gates.get("ManagedJobsNamespaceSelectorAlwaysRespected", default),
        manages_without_queue=config.manage_jobs_without_queue_name,
        topology_aware=gates.get("TopologyAwareScheduling", default),
        excluded_prefixes=tuple(resources.exclude_resource_prefixes or ()),
        transformed=frozenset(transformation.input for transformation in resources.transformations or ()),
        ignores_undeclared=resources.quota_check_strategy == "IgnoreUndeclared",
        maps_devices=bool(resources.device_class_mappings),
    )


def _all_except(*namespaces: str) -> Selector:
    expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(namespaces)}
    return Selector.parse({"matchExpressions": [expression]})


KUEUE_CONFIG = namespaced(
    "configmaps",
    "ConfigMap",
    "v1",
    wire=_ConfigMap,
    record=_record,
    field_selector=f"metadata.name={NAME}",
    place=WatchedPlace.KUEUE,
)
