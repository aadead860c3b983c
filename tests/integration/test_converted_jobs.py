"""Converted jobs of other systems: the webhook admits them, the operator runs them, and they succeed."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.support.older_jobs import HOROVOD, TENSORFLOW
from tests.support.rare import rare
from tests.support.training_jobs import CASES, filled_in
from webhook.api import yaml
from webhook.parts.older_versions import older_jobs
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


def of_older_version(text: str) -> Json:
    (written,) = yaml.load_all(text)
    return older_jobs.convert(written).document


def of_sagemaker(request: Mapping[str, Any]) -> Json:
    options = Options(network="none", claims=dict.fromkeys(("train", "code", "model", "checkpoints"), DATA))
    converted: Json = filled_in(training_job.convert(request, options).document)
    return converted


JOBS = {
    "Horovod of v1": of_older_version(HOROVOD),
    "TensorFlow of v1alpha2": of_older_version(TENSORFLOW),
    "PyTorch of SageMaker": of_sagemaker(CASES["spot, with checkpoints"].request),
}


@pytest.mark.usefixtures("claim")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", JOBS)
def test_converted_job_is_admitted_and_succeeds(operator_cluster: Cluster, namespace: str, name: str) -> None:
    job = {**JOBS[name], "metadata": {**JOBS[name]["metadata"], "namespace": namespace}}
    title = job["metadata"]["name"]
    # The service sees the claim a moment after kubectl.
    created = lambda: operator_cluster.kubectl("create", "-f", "-", stdin=job, check=False).returncode == 0  # noqa: E731
    operator_cluster.wait_for("the job to be admitted", lambda: created() or None, timeout=60)
    ended = lambda: has_condition(operator_cluster.get("mpijob", title, "-n", namespace), "Succeeded")  # noqa: E731
    operator_cluster.wait_for("the job to succeed", lambda: ended() or None, timeout=150)
