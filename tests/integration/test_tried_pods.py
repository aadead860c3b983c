"""`check --kubeconfig` and `why` create a job's pods by dry run, to see whether the API server accepts them."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.jobs import GOOD, changed
from tests.support.paths import EXAMPLES
from webhook.api import yaml
from webhook.cli.terminal import DRY_RUN
from webhook.predict import operator_pods

LABEL = "team.example.com/cost-centre"
REJECTS = "the API server rejects this pod"
SAYS = "a pod needs the label team.example.com/cost-centre"
# Fields that the API server, its admission plugins and the scheduler set.
FILLED_IN = ("nodeName", "tolerations", "serviceAccount")


@pytest.fixture(scope="module", autouse=True)
def launchers_need_a_label(operator_cluster: Cluster) -> Iterator[None]:
    """In namespaces with the label `tried-pods`, an admission policy rejects launchers without the label LABEL."""
    expression = (
        "object.metadata.?labels['training.kubeflow.org/job-role'].orValue('') != 'launcher'"
        f" || '{LABEL}' in object.metadata.labels"
    )
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "tried-pods"}}
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": SAYS}],
    }
    binding = {
        "policyName": "tried-pods",
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"tried-pods": "deny"}}},
    }
    operator_cluster.apply([{**head, "kind": "ValidatingAdmissionPolicy", "spec": policy}])
    operator_cluster.apply([{**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding}])
    yield
    operator_cluster.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "tried-pods")


@pytest.fixture
def strict(operator_cluster: Cluster, namespace: str) -> str:
    """A namespace in which the admission policy has taken effect."""
    operator_cluster.kubectl("label", "namespace", namespace, "tried-pods=deny")
    unlabelled = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "labels": {"training.kubeflow.org/job-role": "launcher"}},
        "spec": {"containers": [{"name": "main", "image": "example.com/main"}]},
    }
    probe = ("create", "-n", namespace, "-f", "-", "--dry-run=server")
    operator_cluster.wait_for(
        "the policy", lambda: SAYS in operator_cluster.kubectl(*probe, stdin=unlabelled, check=False).stderr or None
    )
    return namespace


def run(cluster: Cluster, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "webhook", *arguments]
    flags = ["--kubeconfig", str(kubeconfig or cluster.kubeconfig)]
    return subprocess.run([*command, *flags], capture_output=True, text=True, timeout=120, check=False)


def written(folder: Path, namespace: str, changes: dict[str, Any] | None = None) -> str:
    job = changed({"metadata.namespace": namespace, **(changes or {})}, GOOD)
    (folder / "job.json").write_text(json.dumps(job))
    return str(folder / "job.json")


def test_launcher_rejected_by_an_admission_policy_causes_a_warning(
    operator_cluster: Cluster, strict: str, tmp_path: Path
) -> None:
    done = run(operator_cluster, "check", written(tmp_path, strict))
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if SAYS in line]
    assert line.strip().startswith(f"warning: spec.mpiReplicaSpecs[Launcher].template: {REJECTS}: ")
    assert f"Worker].template: {REJECTS}" not in done.stdout
    assert done.stderr.count(DRY_RUN) == 1
    assert operator_cluster.get("pods", "-n", strict)["items"] == []


def test_accepted_pods_cause_no_warning(operator_cluster: Cluster, strict: str, tmp_path: Path) -> None:
    labelled = {"Launcher.template.metadata.labels": {LABEL: "4000"}}
    done = run(operator_cluster, "check", "-q", "--fail-on", "warn", written(tmp_path, strict, labelled))
    assert REJECTS not in done.stdout
    assert done.stderr.count(DRY_RUN) == 1
    assert "not judged: rules that need the job's pods" not in done.stderr


def test_pods_are_not_tried_without_permission_to_create_them(
    operator_cluster: Cluster, strict: str, tmp_path: Path
) -> None:
    viewer = operator_cluster.kubeconfig_for("tried-pods-viewer")
    operator_cluster.kubectl(
        "create", "rolebinding", "viewer", "--clusterrole=view", "--user=tried-pods-viewer", "-n", strict
    )
    done = run(operator_cluster, "check", written(tmp_path, strict), kubeconfig=viewer)
    assert REJECTS not in done.stdout
    assert DRY_RUN not in done.stderr
    assert "the job's pods (you may not create pods there)" in done.stderr


def test_command_why_tries_missing_pods(operator_cluster: Cluster, strict: str) -> None:
    job = changed({"metadata.namespace": strict, "metadata.name": "waits"}, GOOD)
    operator_cluster.kubectl("create", "-f", "-", stdin=job)
    operator_cluster.wait_for("the workers", lambda: operator_cluster.get("pods", "-n", strict)["items"] or None)
    operator_cluster.wait_for(
        "the launcher to be rejected",
        lambda: [each for each in operator_cluster.get("events", "-n", strict)["items"] if SAYS in each["message"]],
    )
    # Events expire after an hour, and `why` must work without them.
    operator_cluster.kubectl("delete", "events", "--all", "-n", strict)
    done = run(operator_cluster, "why", f"{strict}/waits")
    assert done.stderr.count(DRY_RUN) == 1
    assert "the launcher cannot be created" in done.stdout
    assert SAYS in done.stdout


@pytest.mark.parametrize("name", ["openmpi-pi", "intel-pi", "mpich-pi", "horovod-gpu"])
def test_tried_pods_match_the_pods_of_the_operator(operator_cluster: Cluster, namespace: str, name: str) -> None:
    (job,) = yaml.load_all((EXAMPLES / f"{name}.yaml").read_text())
    name = job["metadata"]["name"]
    job["metadata"].update(namespace=namespace)
    operator_cluster.kubectl("create", "-f", "-", stdin=job)
    stored = operator_cluster.get("mpijob", name, "-n", namespace)
    worker = operator_cluster.wait_for(
        "a worker",
        lambda: (
            operator_cluster.kubectl("get", "pod", f"{name}-worker-0", "-n", namespace, check=False).returncode == 0
            and operator_cluster.get("pod", f"{name}-worker-0", "-n", namespace)
        ),
    )
    launcher = operator_cluster.wait_for(
        "the launcher",
        lambda: (
            operator_cluster.get("pods", "-n", namespace, "-l", "training.kubeflow.org/job-role=launcher")["items"]
            or [None]
        )[0],
    )
    for role, made in (("Launcher", launcher), ("Worker", worker)):
        pod = operator_pods.of_job(stored, name)[role]
        pod["metadata"]["name"] = "tried"
        shown = operator_cluster.kubectl("create", "-f", "-", "--dry-run=server", "-o", "json", stdin=pod).stdout
        ours, theirs = comparable(json.loads(shown)), comparable(made)
        assert {
            key: (ours.get(key), theirs.get(key)) for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)
        } == {}


def comparable(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod without random values, values that are set later, and labels of the launcher's Job."""
    text = re.sub(r"kube-api-access-\w+", "kube-api-access", json.dumps(pod["spec"]))
    spec: dict[str, Any] = json.loads(text)
    for field in FILLED_IN:
        spec.pop(field, None)
    kept = {f"training.kubeflow.org/{key}" for key in ("operator-name", "job-role", "replica-index")}
    labels = {key: value for key, value in pod["metadata"]["labels"].items() if key in kept}
    return {**spec, "labels": labels, "annotations": pod["metadata"].get("annotations")}
