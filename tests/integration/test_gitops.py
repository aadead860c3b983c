"""Tests docs/gitops.md with the engine of Argo CD, and with server-side apply as Flux uses it."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.build import ensure_built
from tests.controlplane.cluster import Cluster
from tests.gitops.recipe import GITOPS
from tests.support.paths import MANIFESTS, ROOT

pytestmark = [pytest.mark.built(GITOPS), pytest.mark.usefixtures("webhook")]
PAGE = (ROOT / "docs" / "gitops.md").read_text()
ARGO, FLUX = "argocd-controller", "kustomize-controller"


def job(namespace: str = "default") -> dict[str, Any]:
    """A job with its own `env` and `volumes`. Injections add entries to the same lists."""
    manifest: dict[str, Any] = next(yaml.safe_load_all((MANIFESTS / "examples" / "horovod-gpu.yaml").read_text()))
    manifest["metadata"] = {"name": "training", "namespace": namespace, "labels": {"team": "vision"}}
    launcher, worker = (
        manifest["spec"]["mpiReplicaSpecs"][role]["template"]["spec"] for role in ("Launcher", "Worker")
    )
    launcher["containers"][0]["env"] = [{"name": "NCCL_DEBUG", "value": "INFO"}]
    worker["volumes"] = [{"name": "data", "emptyDir": {}}]
    worker["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return manifest


def evaluate(*arguments: str | Path, stdin: Any) -> dict[str, Any]:
    program = ensure_built(GITOPS) / "bin" / "gitops"
    done = subprocess.run([program, *arguments], input=json.dumps(stdin), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def apply(cluster: Cluster, manifest: dict[str, Any], *flags: str, manager: str = ARGO) -> None:
    cluster.kubectl("apply", f"--field-manager={manager}", *flags, "-f", "-", stdin=manifest)


def differences(cluster: Cluster, manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The result of each of Argo CD's comparison modes."""
    named = [manifest["kind"], manifest["metadata"]["name"], "-n", manifest["metadata"].get("namespace", "default")]
    live = json.loads(cluster.kubectl("get", *named, "-o", "json", "--show-managed-fields").stdout)
    return evaluate("diff", cluster.kubeconfig, ARGO, stdin={"config": manifest, "live": live})


def test_argo_cd_shows_the_job_in_sync_with_the_documented_settings(cluster: Cluster, namespace: str) -> None:
    manifest = job(namespace)
    apply(cluster, manifest)
    by_default = differences(cluster, manifest)["default"]
    assert by_default["outOfSync"], "the page says that the default comparison shows a difference"

    apply(cluster, manifest, "--server-side", "--force-conflicts")
    shown = differences(cluster, manifest)
    assert not shown["server-side diff"]["outOfSync"], shown["server-side diff"]
    assert not shown["server-side apply"]["outOfSync"], shown["server-side apply"]


def test_flux_finds_no_drift(cluster: Cluster, namespace: str) -> None:
    manifest = job(namespace)
    apply(cluster, manifest, "--server-side", manager=FLUX)
    stored = cluster.get("mpijob", "training", "-n", namespace)
    dry = cluster.kubectl(
        "apply", "--server-side", f"--field-manager={FLUX}", "--dry-run=server", "-o", "json", "-f", "-", stdin=manifest
    )
    assert json.loads(dry.stdout)["spec"] == stored["spec"]


def test_argo_cd_leaves_the_ca_bundle_to_the_service(cluster: Cluster) -> None:
    text = (MANIFESTS / "components" / "hooks" / "webhooks.yaml").read_text()
    hooks: dict[str, Any] = next(yaml.safe_load_all(text))
    hooks["metadata"]["name"] = "gitops.example.com"
    nowhere = {"matchLabels": {"nowhere": "true"}}
    hooks["webhooks"] = [hook | {"failurePolicy": "Ignore", "namespaceSelector": nowhere} for hook in hooks["webhooks"]]
    apply(cluster, hooks, "--server-side")
    bundle = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Q0E="}]
    cluster.kubectl("patch", hooks["kind"], hooks["metadata"]["name"], "--type=json", "-p", json.dumps(bundle))
    shown = differences(cluster, hooks)["server-side diff"]
    cluster.kubectl("delete", hooks["kind"], hooks["metadata"]["name"])
    assert not shown["outOfSync"], shown


def conditions(*kinds: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "message": f"is {kind}"} for kind in kinds]}}


HEALTH = [
    ({"status": {}}, "Progressing", "InProgress"),
    (conditions("Created"), "Progressing", "InProgress"),
    (conditions("Created", "Suspended"), "Suspended", "Current"),
    (conditions("Created", "Running"), "Progressing", "Current"),
    (conditions("Created", "Running", "Succeeded"), "Healthy", "Current"),
    (conditions("Created", "Failed"), "Degraded", "Failed"),
]


def block(kind: str) -> dict[str, Any]:
    blocks = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    return next(each for each in blocks if each["kind"] == kind)


@pytest.mark.parametrize(("job_status", "argo", "flux"), HEALTH)
def test_documented_health_checks_give_the_expected_health(
    job_status: dict[str, Any], argo: str, flux: str, tmp_path: Path
) -> None:
    script = tmp_path / "health.lua"
    script.write_text(block("ConfigMap")["data"]["resource.customizations.health.kubeflow.org_MPIJob"])
    assert evaluate("health", script, stdin=job_status)["status"] == argo

    check = block("Kustomization")["spec"]["healthCheckExprs"][0]
    assert evaluate("status", json.dumps(check), stdin=job() | job_status)["status"] == flux
