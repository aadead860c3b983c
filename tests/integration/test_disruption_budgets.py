"""`kubectl drain` waits for the end of a job that has a PodDisruptionBudget, on a real API server."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import KEEP_RUNNING
from tests.support.installation import default_overlay, service
from tests.support.jobs import changed
from tests.support.paths import MANIFESTS
from tests.support.policies import HEADER
from webhook.api.yaml import load_all

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("budgets")]
RIGHTS = MANIFESTS / "components" / "disruption-budgets" / "rbac.yaml"
ROLES = ("Launcher", "Worker")
PODS = 3
# The workers keep running after the job has ended.
KEEPS = {"spec.runPolicy": {"cleanPodPolicy": "None"}}
NAME = "drained"
OF_JOB = f"training.kubeflow.org/job-name={NAME}"


@pytest.fixture(scope="module")
def budgets(operator_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs the service as its ServiceAccount, with the permissions of the component."""
    default_overlay.apply(operator_cluster)
    operator_cluster.apply(load_all(RIGHTS.read_text()))
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(f"{HEADER}injections: {{no-disruption: {{budget: true}}}}\n")
    account = default_overlay.account(operator_cluster)
    flags = ("--disruption-budgets", "--kubeconfig", str(account), "--policy", str(policy))
    with service.running(operator_cluster, *flags, name="budgets", register=False):
        yield


def job(namespace: str) -> dict[str, Any]:
    limits = {f"{role}.template.spec.containers.0.resources": {"limits": {"cpu": "10m"}} for role in ROLES}
    kept = {f"{role}.template.metadata": {"annotations": {KEEP_RUNNING: "yes"}} for role in ROLES}
    return changed(
        {"metadata": {"name": NAME, "namespace": namespace}, "Worker.replicas": 2, **KEEPS, **limits, **kept}
    )


def drain(cluster: Cluster, node: str, *flags: str) -> Any:
    return cluster.kubectl("drain", node, "--force", f"--pod-selector={OF_JOB}", *flags, check=False)


def test_drain_waits_for_the_end_of_the_job(operator_cluster: Cluster, namespace: str) -> None:
    cluster = operator_cluster
    cluster.kubectl("create", "-f", "-", stdin=job(namespace))
    of_job = ("mpijob", NAME, "-n", namespace)
    cluster.wait_for("the job to run", lambda: has_condition(cluster.get(*of_job), "Running"), timeout=60)
    of_budget = ("poddisruptionbudget", f"mpijob-{NAME}", "-n", namespace)
    counted = lambda: cluster.get(*of_budget)["status"].get("currentHealthy") == PODS  # noqa: E731
    cluster.wait_for("the budget to count all pods", counted, timeout=60)
    node = cluster.get("pod", f"{NAME}-worker-0", "-n", namespace)["spec"]["nodeName"]

    refused = drain(cluster, node, "--timeout=5s")
    assert refused.returncode
    assert "Cannot evict pod as it would violate the pod's disruption budget" in refused.stderr
    uid = cluster.get("pod", f"{NAME}-worker-0", "-n", namespace)["metadata"]["uid"]

    ended = '{"metadata": {"annotations": null}}'
    of_launcher = f"-l{OF_JOB},training.kubeflow.org/job-role=launcher"
    (launcher,) = cluster.get("pods", of_launcher, "-n", namespace)["items"]
    cluster.kubectl("patch", "pod", launcher["metadata"]["name"], "-n", namespace, "--type=merge", "-p", ended)
    cluster.wait_for("the job to succeed", lambda: has_condition(cluster.get(*of_job), "Succeeded"), timeout=60)
    freed = lambda: cluster.get(*of_budget)["spec"]["minAvailable"] == 0  # noqa: E731
    cluster.wait_for("the budget to allow evictions", freed, timeout=60)
    assert cluster.get("pod", f"{NAME}-worker-0", "-n", namespace)["metadata"]["uid"] == uid
    drained = drain(cluster, node, "--timeout=60s")
    assert drained.returncode == 0, drained.stderr
    cluster.kubectl("uncordon", node)

    cluster.kubectl("delete", *of_job)
    gone = lambda: not cluster.get("poddisruptionbudgets", "-n", namespace)["items"]  # noqa: E731
    cluster.wait_for("the garbage collector to delete the budget", gone, timeout=60)
