"""The default overlay in a test cluster. Replicas run as processes with the overlay's ServiceAccount."""

from pathlib import Path

from tests.controlplane.cluster import Cluster
from tests.support.installation.installed import OURS
from tests.support.paths import MANIFESTS
from webhook.api.yaml import load_all
from webhook.installation.registration import RESOURCES

ACCOUNT = f"system:serviceaccount:{OURS}:{OURS}"


def apply(cluster: Cluster) -> None:
    """Apply the overlay without the Deployment and without the webhook configurations."""
    overlay = load_all(cluster.kubectl("kustomize", MANIFESTS / "overlays" / "default").stdout)
    cluster.apply([each for each in overlay if each["kind"] not in (*RESOURCES, "Deployment")])


def account(cluster: Cluster) -> Path:
    """A kubeconfig for the ServiceAccount."""
    return cluster.kubeconfig_for(ACCOUNT, ["system:serviceaccounts", f"system:serviceaccounts:{OURS}"])


def may(cluster: Cluster, verb: str, resource: str) -> bool:
    """Whether the ServiceAccount has this permission in the namespace `default`."""
    command = ("auth", "can-i", verb, resource, "-n", "default", f"--as={ACCOUNT}")
    return cluster.kubectl(*command, check=False).stdout.strip() == "yes"
