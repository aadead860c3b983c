"""The service reviews an MPIJob, a real API server stores the job, and the real operator runs it."""

from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import KEEP_RUNNING
from tests.support.installation.service import example
from tests.support.jobs import changed

pytestmark = pytest.mark.usefixtures("webhook")
EXAMPLES = assets().upstream_examples
ISTIO = "sidecar.istio.io/inject"


def with_istio_off(template: dict[str, Any]) -> bool:
    metadata = template["metadata"]
    return metadata["labels"].get(ISTIO) == metadata["annotations"].get(ISTIO) == "false"


@pytest.mark.timeout(240)
def test_upstream_pi_is_mutated_and_its_pods_have_the_injected_values(
    operator_cluster: Cluster, namespace: str
) -> None:
    job = example(EXAMPLES["pi"], namespace=namespace)
    template = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    template["metadata"] = {"annotations": {KEEP_RUNNING: "yes"}}
    created = operator_cluster.kubectl("create", "-f", "-", stdin=job)
    assert "istio" in created.stderr  # each change is shown as a warning

    stored = operator_cluster.get("mpijob", "pi", "-n", namespace)
    assert stored["metadata"]["labels"] == {"training.kubeflow.org/job-type": "mpijob"}
    assert stored["metadata"]["annotations"][ISTIO] == "false"
    assert stored["spec"]["runPolicy"] == {
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": 60,
        "activeDeadlineSeconds": 24 * 60 * 60,
        "suspend": False,
    }

    def get(*what: str) -> Any:
        return operator_cluster.get(*what, "-n", namespace)

    operator_cluster.wait_for(
        "the job to run", lambda: has_condition(get("mpijob", "pi"), "Running") or None, timeout=120
    )
    launcher = get("job", "pi-launcher")["spec"]["template"]
    assert with_istio_off(launcher)
    assert launcher["spec"]["automountServiceAccountToken"] is False
    env = {item["name"]: item.get("value") for item in launcher["spec"]["containers"][0]["env"]}
    assert env["PRTE_MCA_prte_default_hostfile"] == "/etc/mpi/hostfile"
    assert env["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"  # the operator's variable is still present
    for index in range(2):
        worker = get("pod", f"pi-worker-{index}")
        assert with_istio_off(worker)
        assert worker["spec"]["automountServiceAccountToken"] is False
    assert get("service", "pi")["spec"]["clusterIP"] == "None"
    assert "pi-worker-1.pi" in get("configmap", "pi-config")["data"]["hostfile"]
    assert get("secret", "pi-ssh")["type"] == "kubernetes.io/ssh-auth"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_upstream_example_is_admitted(cluster: Cluster, namespace: str, name: str) -> None:
    job = example(EXAMPLES[name], namespace=namespace)
    result = cluster.kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", stdin=job)
    assert f'{ISTIO}: "false"' in result.stdout


def test_upstream_example_with_one_worker_is_rejected(cluster: Cluster, namespace: str) -> None:
    job = changed({"Worker.replicas": 1}, example(EXAMPLES["pi"], namespace=namespace))
    result = cluster.kubectl("create", "-f", "-", stdin=job, check=False)
    assert result.returncode == 1
    assert (
        "is invalid: spec.mpiReplicaSpecs[Worker].replicas: 1 worker, at least 2 required. Set replicas to 2 or more. "
        "[worker-count]"
    ) in result.stderr
    assert cluster.get("mpijobs", "-n", namespace)["items"] == []


def test_decision_is_in_the_audit_log_of_the_api_server(cluster: Cluster, namespace: str) -> None:
    good = example(EXAMPLES["pi"], namespace=namespace, name="audited")
    cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=good)
    cluster.kubectl("create", "-f", "-", stdin=changed({"Worker.replicas": 1}, good), check=False)
    annotations: dict[str, str] = {}
    for event in cluster.audit_events("audited") or cluster.audit_events(""):
        annotations |= event.get("annotations", {})
    assert annotations["mutate.mpijob.training.openshift.io/injected"].startswith("api-access,created-by,istio")
    assert annotations["validate.mpijob.training.openshift.io/denied"] == "worker-count"


@pytest.mark.parametrize("flags", [[], ["--server-side"]])
def test_second_apply_of_a_job_changes_nothing(cluster: Cluster, namespace: str, flags: list[str]) -> None:
    job = example(EXAMPLES["pi"], namespace=namespace)
    cluster.kubectl("apply", *flags, "-f", "-", stdin=job)
    before = cluster.get("mpijob", "pi", "-n", namespace)
    assert cluster.kubectl("apply", *flags, "-f", "-", stdin=job).stderr == ""
    after = cluster.get("mpijob", "pi", "-n", namespace)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
