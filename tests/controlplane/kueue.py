"""Kueue's installation, adapted to a program on loopback instead of a pod, and short forms of Kueue's objects.

The program is unchanged: by default it manages its certificate for the name of its Service
(https://kueue.sigs.k8s.io/docs/installation/). Here the Service points to this host, and this module provides
configuration and certificate like a kubelet.
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
CERTIFICATE = "kueue-webhook-server-cert"  # Kueue writes its certificate into this Secret, which its pod mounts
SERVICE = "kueue-webhook-service"
CONFIG_MAP = "kueue-manager-config"
CONFIG_KEY = "controller_manager_config.yaml"
API_VERSION = "kueue.x-k8s.io/v1beta2"

Manifest = dict[str, Any]
Quotas = Mapping[str, Mapping[str, int | str]]
"""Nominal quotas by flavor and resource: `{"gpu": {"cpu": 96, "memory": "1Ti"}}`. All flavors have equal resources."""


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Objects to apply before and after Kueue's start. Webhooks are applied after the start: they would fail before."""

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

    `settings` are top-level fields of the configuration, such as `resources`. Webhooks are only kept for Kueue's kinds
    and `frameworks`. Objects for a pod are dropped: the Deployment, and the visibility API with its fixed certificate
    folder.
    """
    documents = [
        document
        for document in yaml.load_all(manifests, Loader=yaml.CSafeLoader)  # the manifests have two megabytes
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
        client["service"]["port"] = port  # the port of a Service with an external name has no effect
    for document in documents:
        if _is_webhook(document):
            document["webhooks"] = [hook for hook in document["webhooks"] if _is_in_use(hook, frameworks)]
    return Installation(
        config=config,
        objects=[document for document in documents if not _is_webhook(document)],
        webhooks=[document for document in documents if _is_webhook(document)],
    )


def trusting(webhooks: Iterable[Manifest], ca_bundle: str) -> list[Manifest]:
    """The webhooks with Kueue's CA (PEM in base64). Kueue would add its CA only after some requests have failed."""

    def with_ca(hook: Manifest) -> Manifest:
        return hook | {"clientConfig": hook["clientConfig"] | {"caBundle": ca_bundle}}

    return [document | {"webhooks": [with_ca(hook) for hook in document["webhooks"]]} for document in webhooks]


def resource_flavor(name: str, *, node_labels: Mapping[str, str] | None = None, **spec: Any) -> Manifest:
    """A ResourceFlavor for the nodes with these labels. `spec` has more fields, such as `nodeTaints`."""
    return _manifest("ResourceFlavor", name, {"nodeLabels": dict(node_labels or {}), **spec})


def cluster_queue(name: str, *, quotas: Quotas, cohort: str | None = None, **spec: Any) -> Manifest:
    """A ClusterQueue for all namespaces. `spec` has more fields, such as `stopPolicy`."""
    member = {"cohortName": cohort} if cohort else {}
    groups = {"namespaceSelector": {}, "resourceGroups": _resource_groups(quotas)}
    return _manifest("ClusterQueue", name, {**groups, **member, **spec})


def cohort(name: str, *, quotas: Quotas | None = None, parent: str | None = None, **spec: Any) -> Manifest:
    """A Cohort, with or without quotas. `spec` has more fields, such as `fairSharing`."""
    child = {"parentName": parent} if parent else {}
    return _manifest("Cohort", name, {"resourceGroups": _resource_groups(quotas or {}), **child, **spec})


def topology(name: str, *levels: str) -> Manifest:
    """A Topology with these node labels, from the widest level to the narrowest."""
    return _manifest("Topology", name, {"levels": [{"nodeLabel": level} for level in levels]})


def local_queue(name: str, *, namespace: str, cluster_queue: str, **spec: Any) -> Manifest:
    """A LocalQueue. `spec` has more fields, such as `stopPolicy`."""
    queue = _manifest("LocalQueue", name, {"clusterQueue": cluster_queue, **spec})
    return queue | {"metadata": queue["metadata"] | {"namespace": namespace}}


def _manifest(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _resource_groups(quotas: Quotas) -> list[Manifest]:
    """A single group, because a ClusterQueue may have each resource only in one group."""
    flavors = [
        {"name": name, "resources": [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]}
        for name, quota in quotas.items()
    ]
    covered = list(next(iter(quotas.values()), ()))
    return [{"coveredResources": covered, "flavors": flavors}] if flavors else []


def _is_webhook(document: Manifest) -> bool:
    return bool(document["kind"].endswith("WebhookConfiguration"))


def _is_in_use(hook: Manifest, frameworks: Sequence[str]) -> bool:
    """Whether a hook is for Kueue's kinds or a framework's kind (`GROUP/KIND`, or `KIND` for the core group)."""
    resources = {f"{framework.rpartition('/')[2]}s" for framework in frameworks}
    return any("kueue.x-k8s.io" in rule["apiGroups"] or resources & {*rule["resources"]} for rule in hook["rules"])


def _clients(documents: Iterable[Manifest]) -> Iterable[Manifest]:
    """Each clientConfig that calls Kueue, in webhooks and in CRDs with conversion."""
    for document in documents:
        if _is_webhook(document):
            yield from (hook["clientConfig"] for hook in document["webhooks"])
        elif "conversion" in document.get("spec", {}):
            yield document["spec"]["conversion"]["webhook"]["clientConfig"]
