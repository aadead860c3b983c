"""helm renders the chart, and kustomize renders the overlays with components. Both give the same objects."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.build import ensure_built
from tests.controlplane.cluster import Cluster
from tests.support.paths import MANIFESTS
from tools.chart import build
from tools.chart.sources import CERTIFICATES, camel, components
from webhook import PROGRAM, __version__
from webhook.api import yaml
from webhook.installation.registration import NAME

pytestmark = [pytest.mark.cluster, pytest.mark.built(build.HELM)]

Json = Any
Objects = dict[tuple[str, str, str], Json]
ALL = tuple(components())
IMAGE = f"--set=image.repository={PROGRAM}"
HOOKS = ("ValidatingWebhookConfiguration", "", NAME)
# Each kind of certificates is tested without components and with all components. The first kind is also tested with
# each single component.
VARIANTS = [(kind, chosen) for kind in CERTIFICATES for chosen in ((), ALL)]
VARIANTS += [(next(iter(CERTIFICATES)), (name,)) for name in ALL]


def helm(*args: str | Path, code: int = 0) -> str:
    """helm's standard output and standard error."""
    command = [ensure_built(build.HELM) / "bin" / "helm", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def by_helm(*flags: str, namespace: str = PROGRAM) -> Objects:
    return _named(helm("template", PROGRAM, build.CHART, "--namespace", namespace, IMAGE, *flags))


def by_kustomize(overlay: str, chosen: tuple[str, ...], folder: Path) -> Objects:
    """The objects of an administrator's overlay that adds components to a shipped overlay."""
    near = lambda path: os.path.relpath(MANIFESTS / path, folder.resolve())  # noqa: E731
    own = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "labels": [{"pairs": {"app.kubernetes.io/part-of": PROGRAM}}],
        "resources": [near(f"overlays/{overlay}")],
        "components": [near(f"components/{_component(name, overlay)}") for name in chosen],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(own))
    command = [assets().kubectl, "kustomize", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found = _named(done.stdout)
    del found["Namespace", "", PROGRAM]
    return found


def _component(name: str, overlay: str) -> str:
    return f"hooks-{overlay}" if name == "hooks" and overlay != "default" else name


def _named(text: str) -> Objects:
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in yaml.load_all(text)
    }


@pytest.mark.parametrize(("certificates", "chosen"), VARIANTS)
def test_helm_and_kustomize_render_the_same_objects(certificates: str, chosen: tuple[str, ...], tmp_path: Path) -> None:
    flags = [f"--set=components.{camel(name)}=true" for name in chosen]
    theirs = by_kustomize(CERTIFICATES[certificates], chosen, tmp_path)
    ours = by_helm(f"--set=certificates={certificates}", *flags)
    assert ours.keys() == theirs.keys()
    for key, found in ours.items():
        assert found == theirs[key], key


@pytest.mark.parametrize("certificates", CERTIFICATES)
def test_release_in_a_different_namespace_refers_to_that_namespace(certificates: str) -> None:
    """The names of the objects stay the same."""
    flags = [f"--set=certificates={certificates}", *(f"--set=components.{camel(name)}=true" for name in ALL)]
    moved = json.dumps([*by_helm(*flags, namespace="else").values()])
    assert f'"namespace": "{PROGRAM}"' not in moved
    assert f"{PROGRAM}.{PROGRAM}" not in moved
    assert f"--policy-namespace={PROGRAM}" not in moved
    assert f'"values": ["kube-system", "{PROGRAM}"]' not in moved
    assert f'"values": ["{PROGRAM}"]' not in moved
    assert f"{PROGRAM}/{PROGRAM}" not in moved


def deployment(*flags: str) -> Json:
    return by_helm(*flags)["Deployment", PROGRAM, PROGRAM]["spec"]


def test_values_change_the_deployment() -> None:
    digest = f"sha256:{'0' * 64}"
    spec = deployment(
        "--set=image.repository=registry.example.com/ml/webhook,image.tag=v1",
        "--set=replicas=3,imagePullSecrets[0].name=pull,nodeSelector.infra=yes",
        "--set=extraArgs={--kueue-namespace=kueue}",
        '--set-json=tolerations=[{"key": "infra"}]',
        "--set=resources.requests.cpu=1",
    )
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["replicas"] == 3
    assert container["image"] == "registry.example.com/ml/webhook:v1"
    assert container["args"][-1] == "--kueue-namespace=kueue"
    assert container["resources"]["requests"] == {"cpu": 1, "memory": "192Mi"}
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"infra": "yes"}, [{"key": "infra"}])
    (container,) = deployment(f"--set=image.digest={digest},image.tag=v1")["template"]["spec"]["containers"]
    assert container["image"] == f"{PROGRAM}@{digest}"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("certificates=none", "certificates"),
        ("replicas=0", "replicas"),
        ("replica=2", "replica"),
        ("components.audits=true", "audits"),
        ("components.audit=yes", "audit"),
        ("image.digest=sha256:1", "digest"),
        ('image.repository=a" # b', "repository"),
        ('image.tag=1" # b', "tag"),
        ("extraArgs={serve}", "extraArgs"),
    ],
)
def test_invalid_values_are_rejected_by_the_schema(value: str, told: str) -> None:
    said = helm("template", PROGRAM, build.CHART, f"--set={value}", code=1)
    assert "values don't meet the specifications of the schema" in said
    assert told in said


@pytest.mark.parametrize("enabled", [True, False])
def test_chart_works_as_a_subchart(enabled: bool, tmp_path: Path) -> None:
    part = {"name": PROGRAM, "version": __version__, "condition": f"{PROGRAM}.enabled"}
    whole = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [part]}
    (tmp_path / "Chart.yaml").write_text(json.dumps(whole))
    (tmp_path / "values.yaml").write_text(json.dumps({PROGRAM: {"enabled": enabled}, "global": {"a": 1}}))
    shutil.copytree(build.CHART, tmp_path / "charts" / PROGRAM)
    found = _named(helm("template", "platform", tmp_path, f"--set={PROGRAM}.image.repository={PROGRAM}"))
    assert (("Deployment", "default", PROGRAM) in found) is enabled


def test_chart_passes_lint() -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", build.CHART, IMAGE)


@pytest.mark.parametrize("flags", [(), ("--set=image.repository=",), ("--set=components.hooks=true",)])
def test_an_image_without_a_name_is_an_error(flags: tuple[str, ...]) -> None:
    said = helm("template", PROGRAM, build.CHART, *flags, code=1)
    assert "image.repository is empty: name the image, with its registry" in said


def test_hooks_are_not_registered_before_a_replica_is_ready(cluster: Cluster) -> None:
    no_node = "--set=nodeSelector.only=here"  # KWOK, which other tests start, would run the pods
    command = (PROGRAM, build.CHART, "--namespace", PROGRAM, "--kubeconfig", cluster.kubeconfig, IMAGE, no_node)
    hooks = ("--reuse-values", "--set=components.hooks=true")
    registered = lambda: cluster.kubectl("get", HOOKS[0], NAME, check=False).returncode == 0  # noqa: E731
    for kind in (HOOKS[0], "MutatingWebhookConfiguration"):  # may be left from other tests
        cluster.kubectl("delete", kind, NAME, "--ignore-not-found")
    cluster.apply(yaml.load_all((MANIFESTS / "base" / "namespace.yaml").read_text()))
    try:
        assert "no replica is ready" in helm("install", *command, "--set=components.hooks=true", code=1)
        assert "The service sees no job yet" in helm("install", *command)
        assert "no replica is ready" in helm("upgrade", *command, *hooks, code=1)
        assert not registered()
        pods = cluster.wait_for("pods", lambda: cluster.get("pods", "-n", PROGRAM)["items"])
        pod = (pods[0]["metadata"]["name"], "-n", PROGRAM, "--subresource=status")
        cluster.kubectl("patch", "pod", *pod, "-p", '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}')
        status = lambda: cluster.get("deployment", PROGRAM, "-n", PROGRAM)["status"]  # noqa: E731
        cluster.wait_for("a ready replica", lambda: status().get("readyReplicas"))
        helm("upgrade", *command, *hooks)
        assert registered()
        cluster.kubectl("delete", "deployment", PROGRAM, "-n", PROGRAM)
        helm("upgrade", *command, *hooks)
        assert registered(), "an upgrade may repair the service, so it does not wait for a ready replica"
    finally:
        helm("uninstall", PROGRAM, "--namespace", PROGRAM, "--kubeconfig", cluster.kubeconfig)
        cluster.kubectl("delete", "namespace", PROGRAM)


def test_notes_contain_the_next_step(cluster: Cluster) -> None:
    command = ("install", PROGRAM, build.CHART, "-n", "ml", "--dry-run", IMAGE, "--kubeconfig", cluster.kubeconfig)
    notes = helm(*command).partition("NOTES:")[2]
    assert "is in namespace ml, whose own MPIJobs it never sees" in notes
    assert "kubectl rollout status deployment mpijob-webhook -n ml" in notes
    assert "mpijob-webhook doctor --policy-namespace ml" in notes
    assert "No policy is installed" in notes
    assert "No policy" not in helm(*command, "--set=components.policies=true").partition("NOTES:")[2]
