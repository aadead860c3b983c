"""Kueue's own installation, adapted to a program on loopback instead of a pod, and its users' objects.

Kueue itself is unchanged: it manages its certificate by default, under its service's name
(https://kueue.sigs.k8s.io/docs/installation/). Only the service points to this host, and this module mounts
configuration and certificate in place of the kubelet.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

FRAMEWORKS = ("batch/job", "kubeflow.org/mpijob")
NAMESPACE = "kueue-system"
ACCOUNT = "kueue-controller-manager"
CERTIFICATE = "kueue-webhook-server-cert"  # the Secret that Kueue fills and its pod mounts
SERVICE = "kueue-webhook-service"
CONFIG_MAP = "kueue-manager-config"
CONFIG_KEY = "controller_manager_config.yaml"
API_VERSION = "kueue.x-k8s.io/v1beta2"

Manifest = dict[str, Any]
Quotas = Mapping[str, Mapping[str, int | str]]
"""Flavor to resource to nominal quota: `{"gpu": {"cpu": 96, "memory": "1Ti"}}`; every flavor has the same resources."""


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Objects to apply before Kueue starts, and those for afterwards, since they would fail every request until
    then.
    """

    config: str
    objects: list[Manifest]
    webhooks: list[Manifest]


def installation(
    manifests: str,
    *,
    frameworks: Sequence[str],
    port: int,
    health_port: int,
    certificates: Path,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Installation:
    """Upstream's `manifests` for a program on this host that reads its certificate from the folder `certificates`.

    `settings` are top-level fields of its configuration (`resources`, `clientConnection`). Only the webhooks of Kueue's
    kinds and of the `frameworks` stay. Objects for a pod (the Deployment, and the visibility API with its fixed folder
    for certificates) are dropped.
    """
    documents = [
        document
        for document in yaml.load_all(manifests, Loader=yaml.CSafeLoader)  # two megabytes
        if document["kind"] not in ("Deployment", "APIService")
    ]
    (config_map,) = (document for document in documents if document["metadata"]["name"] == CONFIG_MAP)
    config = yaml.safe_dump(
        yaml.safe_load(config_map["data"][CONFIG_KEY])
        | {
            "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
            "leaderElection": {"leaderElect": False},
            "integrations": {"frameworks": list(frameworks)},
            "featureGates": {"VisibilityOnDemand": False},
            **settings,
        },
        sort_keys=False,
    )
    config_map["data"] = {CONFIG_KEY: config}
    (service,) = (document for document in documents if document["metadata"]["name"] == SERVICE)
    service["spec"] = {"type": "ExternalName", "externalName": "localhost"}
    for client in _clients(documents):
        client["service"]["port"] = port  # the port of the service has no effect for an external name
    for document in documents:
        if _is_webhook(document):
            document["webhooks"] = [hook for hook in document["webhooks"] if _is_in_use(hook, frameworks)]
    return Installation(
        config=config,
        objects=[document for document in documents if not _is_webhook(document)],
        webhooks=[document for document in documents if _is_webhook(document)],
    )


def trusting(webhooks: Iterable[Manifest], ca_bundle: str) -> list[Manifest]:
    """The webhooks with Kueue's CA (PEM in base64): Kueue itself would add it only after requests have failed."""

    def with_ca(hook: Manifest) -> Manifest:
        return hook | {"clientConfig": hook["clientConfig"] | {"caBundle": ca_bundle}}

    return [document | {"webhooks": [with_ca(hook) for hook in document["webhooks"]]} for document in webhooks]


def resource_flavor(name: str, *, node_labels: Mapping[str, str] | None = None, **spec: Any) -> Manifest:
    """A ResourceFlavor, of the nodes with these labels; `spec` has further fields (`nodeTaints`, `topologyName`)."""
    return _manifest("ResourceFlavor", name, {"nodeLabels": dict(node_labels or {}), **spec})


def cluster_queue(name: str, *, quotas: Quotas, cohort: str | None = None, **spec: Any) -> Manifest:
    """A ClusterQueue for every namespace; `spec` has further fields (`preemption`, `stopPolicy`)."""
    member = {"cohortName": cohort} if cohort else {}
    groups = {"namespaceSelector": {}, "resourceGroups": _resource_groups(quotas)}
    return _manifest("ClusterQueue", name, {**groups, **member, **spec})


def cohort(name: str, *, quotas: Quotas | None = None, parent: str | None = None, **spec: Any) -> Manifest:
    """A Cohort, with quotas of its own or without; `spec` has further fields (`fairSharing`)."""
    child = {"parentName": parent} if parent else {}
    return _manifest("Cohort", name, {"resourceGroups": _resource_groups(quotas or {}), **child, **spec})


def topology(name: str, *levels: str) -> Manifest:
    """A Topology: labels of nodes, from the widest to the narrowest."""
    return _manifest("Topology", name, {"levels": [{"nodeLabel": level} for level in levels]})


def local_queue(name: str, *, namespace: str, cluster_queue: str, **spec: Any) -> Manifest:
    """A LocalQueue; `spec` has further fields (`stopPolicy`)."""
    queue = _manifest("LocalQueue", name, {"clusterQueue": cluster_queue, **spec})
    return queue | {"metadata": queue["metadata"] | {"namespace": namespace}}


def _manifest(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _resource_groups(quotas: Quotas) -> list[Manifest]:
    """One group: a ClusterQueue may have each resource in one group only."""
    flavors = [
        {"name": name, "resources": [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]}
        for name, quota in quotas.items()
    ]
    covered = list(next(iter(quotas.values()), ()))
    return [{"coveredResources": covered, "flavors": flavors}] if flavors else []


def _is_webhook(document: Manifest) -> bool:
    return bool(document["kind"].endswith("WebhookConfiguration"))


def _is_in_use(hook: Manifest, frameworks: Sequence[str]) -> bool:
    """Whether a hook is for Kueue's own kinds or those of a framework (`GROUP/KIND`, of the core just `KIND`)."""
    resources = {f"{framework.rpartition('/')[2]}s" for framework in frameworks}
    return any("kueue.x-k8s.io" in rule["apiGroups"] or resources & {*rule["resources"]} for rule in hook["rules"])


def _clients(documents: Iterable[Manifest]) -> Iterable[Manifest]:
    """Each clientConfig that calls Kueue: of its webhooks, and of the CRDs that it converts."""
    for document in documents:
        if _is_webhook(document):
            yield from (hook["clientConfig"] for hook in document["webhooks"])
        elif "conversion" in document.get("spec", {}):
            yield document["spec"]["conversion"]["webhook"]["clientConfig"]
