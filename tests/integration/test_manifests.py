"""`kubectl apply -k` on a real API server: a second apply changes nothing, and all objects can be deleted."""

import base64
import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from certs.authority import Authority
from tests.controlplane.cluster import Cluster
from tests.support.installation.custom_resources import custom_resource, install
from tests.support.paths import MANIFESTS
from tests.support.rare import rare
from webhook.api.yaml import load_all
from webhook.installation.registration import NAME, RESOURCES

OVERLAYS = sorted(path.name for path in (MANIFESTS / "overlays").iterdir())
OPTIONAL = (
    "hooks", "monitoring", "policies", "hpa", "key-removal", "deadline-events", "job-metrics", "network-policies",
    "disruption-budgets", "audit", "conversion", "conversion-ca-bundle", "trainer",
)  # fmt: skip
HOOKED = "components: [../../components/hooks]"
OURS = "mpijob-webhook"
CA = base64.b64encode(Authority("test", lifetime=timedelta(days=1)).certificate_pem).decode()
# Kubernetes creates and deletes these objects at any time.
PASSING = {"events", "events.events.k8s.io", "leases.coordination.k8s.io"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster, because tests compare all objects before and after."""
    with Cluster(log_dir=tmp_path_factory.mktemp("manifests-logs")) as running:
        install(
            running,
            [
                custom_resource("cert-manager.io", "issuers", "Issuer", "v1"),
                custom_resource("cert-manager.io", "certificates", "Certificate", "v1"),
                custom_resource("monitoring.coreos.com", "servicemonitors", "ServiceMonitor", "v1"),
                custom_resource("monitoring.coreos.com", "prometheusrules", "PrometheusRule", "v1"),
            ],
        )
        yield running


@pytest.fixture(scope="module")
def overlays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the folder of overlays, with two additional overlays.

    `everything` is the default overlay with every optional component and an administrator's image. `hooked` is the
    default overlay with the component `hooks`.
    """
    folder = tmp_path_factory.mktemp("manifests") / "manifests"
    shutil.copytree(MANIFESTS, folder)
    lines = [
        "resources: [../default]",
        f"components: {json.dumps([f'../../components/{name}' for name in OPTIONAL])}",
        "images:",
        "  - {name: mpijob-webhook, newName: registry.example.com/ml/mpijob-webhook, newTag: mine}",
    ]
    everything = folder / "overlays" / "everything"
    hooked = folder / "overlays" / "hooked"
    for overlay, text in ((everything, "\n".join(lines)), (hooked, "\n".join([lines[0], HOOKED]))):
        overlay.mkdir()
        (overlay / "kustomization.yaml").write_text(text)
    return everything.parent


def inventory(cluster: Cluster) -> set[str]:
    """The kind, namespace and name of every object that can be listed."""
    listed = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
    form = "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name"
    everything = cluster.kubectl("get", ",".join(sorted(set(listed) - PASSING)), "-A", "--no-headers", "-o", form)
    return {" ".join(line.split()) for line in everything.stdout.splitlines() if line.strip()}


def delete(cluster: Cluster, folder: Path) -> None:
    """Uninstall like the runbook: first the webhook configurations, because their service is about to be deleted."""
    for resource in RESOURCES.values():
        cluster.kubectl("delete", resource, NAME, "--ignore-not-found")
    cluster.kubectl("delete", "-k", folder, "--ignore-not-found", "--timeout=60s", timeout=90)


def pods(cluster: Cluster) -> list[Any]:
    found: list[Any] = cluster.get("pods", "-n", OURS)["items"]
    return found


@pytest.mark.parametrize("overlay", [pytest.param(name, marks=() if name == "default" else rare) for name in OVERLAYS])
def test_overlay_can_be_applied_twice_and_deleted(cluster: Cluster, overlays: Path, overlay: str) -> None:
    folder = overlays / overlay
    before = inventory(cluster)
    apply = ("apply", "-k", folder, "--server-side", "--validate=strict")
    first = cluster.kubectl(*apply)
    assert first.stderr == ""
    # The two pods exist only if admission accepts them. Admission checks pod security (the namespace enforces
    # `restricted`), the service account, the quota and the priority class.
    cluster.wait_for("two pods", lambda: len(pods(cluster)) == 2 or None)
    (pod, _) = pods(cluster)
    assert pod["spec"]["priority"] == 2000000000

    second = cluster.kubectl(*apply)
    assert second.stdout == first.stdout
    assert cluster.kubectl("diff", "-k", folder, "--server-side", check=False).stdout == ""

    delete(cluster, folder)
    assert inventory(cluster) ^ before == set()


@rare
def test_overlay_with_all_components_can_be_applied_twice_and_deleted(cluster: Cluster, overlays: Path) -> None:
    folder = overlays / "everything"
    before = inventory(cluster)
    apply = ("apply", "-k", folder, "--validate=strict")
    cluster.kubectl(*apply)
    cluster.wait_for("the pods", lambda: pods(cluster) or None)
    assert pods(cluster)[0]["spec"]["containers"][0]["image"] == "registry.example.com/ml/mpijob-webhook:mine"
    again = cluster.kubectl(*apply).stdout.splitlines()
    # kubectl always sends the selector of a PodDisruptionBudget, because the selector's patchStrategy is "replace".
    assert [line for line in again if not line.endswith(" unchanged")] == [
        f"poddisruptionbudget.policy/{OURS} configured"
    ]
    delete(cluster, folder)
    assert inventory(cluster) ^ before == set()


@rare
def test_applying_the_manifests_again_keeps_ca_and_ca_bundles(cluster: Cluster, overlays: Path) -> None:
    """The service writes the CA into the Secret and the caBundles."""
    folder = overlays / "hooked"
    cluster.kubectl("apply", "-k", folder)
    secret = ("secret", f"{OURS}-ca", "-n", OURS)
    patch(cluster, *secret, values={"/data": {"ca.crt": CA}})
    for resource in RESOURCES.values():
        count = len(cluster.get(resource, NAME)["webhooks"])
        patch(cluster, resource, NAME, values={f"/webhooks/{i}/clientConfig/caBundle": CA for i in range(count)})
    for how in ((), ("--server-side",)):
        cluster.kubectl("apply", "-k", folder, *how)
        assert cluster.get(*secret)["data"] == {"ca.crt": CA}
        assert {hook["clientConfig"]["caBundle"] for hook in hooks(cluster)} == {CA}
    delete(cluster, folder)


def test_rights_on_secrets_are_minimal(cluster: Cluster, overlays: Path) -> None:
    rights = {
        name: sorted(
            (role["kind"], role["metadata"]["name"], *rule.get("resourceNames", ["*"]), *rule["verbs"])
            for role in of_kind(rendered(cluster, overlays / name), "Role", "ClusterRole")
            for rule in role["rules"]
            if "secrets" in rule["resources"]
        )
        for name in (*OVERLAYS, "everything")
    }
    own = ("Role", f"{OURS}-certificates", f"{OURS}-ca", "get", "patch")
    assert rights == {
        "default": [own],
        "cert-manager": [],
        "openshift": [],
        "everything": [("ClusterRole", f"{OURS}-key-removal", "*", "delete"), own],
    }


def test_roles_of_the_service_have_no_wildcards_and_no_escalation(cluster: Cluster, overlays: Path) -> None:
    objects = rendered(cluster, overlays / "everything")
    bound = {binding["roleRef"]["name"] for binding in of_kind(objects, "RoleBinding", "ClusterRoleBinding")}
    roles = [role for role in of_kind(objects, "Role", "ClusterRole") if role["metadata"]["name"] in bound]
    assert {role["metadata"]["name"] for role in roles} == bound
    for rule in (rule for role in roles for rule in role["rules"]):
        assert not {"*", "escalate", "bind", "impersonate", "deletecollection"} & set(rule["verbs"])
        assert "*" not in rule["resources"] + rule["apiGroups"]
        assert not [resource for resource in rule["resources"] if "/" in resource]


@pytest.mark.parametrize("overlay", [*OVERLAYS, "everything"])
def test_pod_has_a_strict_security_context(cluster: Cluster, overlays: Path, overlay: str) -> None:
    (deployment,) = of_kind(rendered(cluster, overlays / overlay), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(pod)
    assert all(set(volume) & {"projected", "secret"} for volume in pod["volumes"])
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


def hooks(cluster: Cluster) -> list[Any]:
    return [hook for resource in RESOURCES.values() for hook in cluster.get(resource, NAME)["webhooks"]]


def patch(cluster: Cluster, *which: str, values: dict[str, Any]) -> None:
    operations = [{"op": "add", "path": path, "value": value} for path, value in values.items()]
    cluster.kubectl("patch", *which, "--type=json", "-p", json.dumps(operations))


def rendered(cluster: Cluster, folder: Path) -> list[Any]:
    """The objects that `kubectl apply -k` would send."""
    return load_all(cluster.kubectl("kustomize", folder).stdout)


def of_kind(objects: list[Any], *kinds: str) -> list[Any]:
    return [found for found in objects if found["kind"] in kinds]
