"""Kueue's installation, adapted to a program on loopback instead of a pod.

The program is unchanged. By default, it manages its certificate for the name of its Service
(https://kueue.sigs.k8s.io/docs/installation/). Here the Service points to this host, and this module provides
configuration and certificate as a kubelet does for a pod.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FRAMEWORKS = ("batch/job", "kubeflow.org/mpijob")
NAMESPACE = "kueue-system"
ACCOUNT = "kueue-controller-manager"
CERTIFICATE = "kueue-webhook-server-cert"  # Kueue writes its certificate into this Secret, which its pod mounts
SERVICE = "kueue-webhook-service"
CONFIG_MAP = "kueue-manager-config"
CONFIG_KEY = "controller_manager_config.yaml"

Manifest = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Objects to apply before Kueue starts, and webhooks to apply afterwards, because they fail without Kueue."""

    config: str
    objects: list[Manifest]
    webhooks: list[Manifest]


def installation(
    manifests: str,
    *,
    port: int,
    health_port: int,
    certificates: Path,
    settings: Mapping[str, Any],
) -> Installation:
    """Upstream's `manifests` for a program on this host that reads its certificate from the folder `certificates`.

    `settings` are top-level fields of the configuration, such as `resources`. Only webhooks for Kueue's kinds and
    FRAMEWORKS are kept. Objects that need a pod are left out: the Deployment, and the visibility API with its fixed
    certificate folder.
    """
    documents = [
        document
        for document in yaml.load_all(manifests, Loader=yaml.CSafeLoader)  # two megabytes are slow without C
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
            "integrations": {"frameworks": list(FRAMEWORKS)},
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
            document["webhooks"] = [hook for hook in document["webhooks"] if _is_in_use(hook)]
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


def _is_webhook(document: Manifest) -> bool:
    return bool(document["kind"].endswith("WebhookConfiguration"))


def _is_in_use(hook: Manifest) -> bool:
    """Whether a hook is for Kueue's kinds or a framework's kind."""
    resources = {f"{framework.rpartition('/')[2]}s" for framework in FRAMEWORKS}
    return any("kueue.x-k8s.io" in rule["apiGroups"] or resources & {*rule["resources"]} for rule in hook["rules"])


def _clients(documents: Iterable[Manifest]) -> Iterable[Manifest]:
    """Each clientConfig that calls Kueue, in webhooks and in CRDs with conversion."""
    for document in documents:
        if _is_webhook(document):
            yield from (hook["clientConfig"] for hook in document["webhooks"])
        elif "conversion" in document.get("spec", {}):
            yield document["spec"]["conversion"]["webhook"]["clientConfig"]
