"""In debug mode the pod and the log of a failed launcher stay. Otherwise both are deleted, and a warning says so."""

from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import BY_HAND
from tests.support.installation import service
from tests.support.jobs import changed
from tests.support.mpi.kubelet import report
from tests.support.policies import quick_keys
from webhook.api.annotations import DEBUG_MODE
from webhook.injections.clean_pod_policy import LOSES_LOG

pytestmark = pytest.mark.timeout(300)


def launchers(cluster: Cluster, namespace: str, name: str) -> list[str]:
    selector = f"training.kubeflow.org/job-name={name},training.kubeflow.org/job-role=launcher"
    pods = cluster.get("pods", "-n", namespace, "-l", selector)["items"]
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def test_launcher_pod_of_a_failed_job_stays_only_in_debug_mode(
    operator_cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    cluster = operator_cluster
    with service.running(cluster, *quick_keys(tmp_path)):
        for name, annotations in (("debugged", {DEBUG_MODE: "true"}), ("plain", {})):
            job = changed(
                {
                    "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
                    "spec.runPolicy.backoffLimit": 0,
                    "spec.runPolicy.cleanPodPolicy": "Running",
                    "Worker.replicas": 2,
                    "Launcher.template.metadata": {"annotations": {BY_HAND: "yes"}},
                }
            )
            warnings = cluster.kubectl("create", "-f", "-", stdin=job).stderr
            assert (f"; {LOSES_LOG}\n" in warnings) == (name == "plain")
    for name, phase in (("debugged", "Failed"), ("plain", "Running")):  # OnFailure restarts the container of `plain`
        (pod,) = cluster.wait_for(f"the launcher of {name}", lambda name=name: launchers(cluster, namespace, name))
        assert report(cluster, namespace, pod, phase, ready=False, restarts=1)
        failed = lambda name=name: has_condition(cluster.get("mpijob", name, "-n", namespace), "Failed") or None  # noqa: E731
        cluster.wait_for(f"{name} to fail", failed)
    assert len(launchers(cluster, namespace, "debugged")) == 1
    cluster.wait_for("the launcher to be deleted", lambda: not launchers(cluster, namespace, "plain") or None)
