"""A SageMaker job is converted to an MPIJob. The webhook admits the MPIJob, the operator runs it, and it succeeds."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.support.rare import rare
from tests.support.training_jobs import CASES, filled_in
from webhook.parts.sagemaker import job as training_job
from webhook.parts.sagemaker.machines import Options

Json = dict[str, Any]
DATA = "data"

pytestmark = [rare, pytest.mark.usefixtures("webhook")]


@pytest.fixture
def claim(operator_cluster: Cluster, namespace: str) -> Iterator[str]:
    """A claim that is already bound, because the cluster creates no volumes."""
    volume: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": "/data"},
            "claimRef": {"namespace": namespace, "name": DATA},
        },
    }
    wanted: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": DATA, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": namespace,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    operator_cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": [volume, wanted]})
    yield DATA
    operator_cluster.kubectl("delete", "persistentvolume", namespace, "--wait=false")


def converted(request: Mapping[str, Any]) -> Json:
    options = Options(network="none", claims=dict.fromkeys(("train", "code", "model", "checkpoints"), DATA))
    document: Json = filled_in(training_job.convert(request, options).document)
    return document


@pytest.mark.usefixtures("claim")
@pytest.mark.timeout(240)
def test_converted_job_is_admitted_and_succeeds(operator_cluster: Cluster, namespace: str) -> None:
    job = converted(CASES["spot, with checkpoints"].request)
    job["metadata"]["namespace"] = namespace
    title = job["metadata"]["name"]
    # The service sees the claim a moment after kubectl has created it.
    created = lambda: operator_cluster.kubectl("create", "-f", "-", stdin=job, check=False).returncode == 0  # noqa: E731
    operator_cluster.wait_for("the job to be admitted", lambda: created() or None, timeout=60)
    ended = lambda: has_condition(operator_cluster.get("mpijob", title, "-n", namespace), "Succeeded")  # noqa: E731
    operator_cluster.wait_for("the job to succeed", lambda: ended() or None, timeout=150)
