"""Another webhook removes a required injection from a job, on a real API server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.meddler import meddling
from tests.support.installation.service import example
from tests.support.policies import HEADER
from webhook.admission.validate.required_injections import RULE
from webhook.injections.istio import KEY

pytestmark = pytest.mark.timeout(300)
PI = assets().upstream_examples["pi"]
FIELD = f"spec.mpiReplicaSpecs[Launcher].template.metadata.labels[{KEY}]"
MISSING = 'the injection "istio" is required and not in the job, and 4 other values of it are missing too'
WARNING = (
    'Warning: spec.mpiReplicaSpecs[Launcher]: the injection "istio" is required and n...ues of it are missing too '
    f"[{RULE}]\n"
)
FIX = "Submit it again; if that does not help, another webhook removes it: ask your administrator."


@pytest.fixture(scope="module", params=["deny", "warn"])
def required(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[str]:
    """Runs the service with a policy. Yields the policy's action for a missing injection."""
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(f"{HEADER}injections: {{istio: {{required: {request.param}}}}}\n")
    with service.running(cluster, "--policy", str(policy)):
        yield request.param


def create(cluster: Cluster, namespace: str, **metadata: Any) -> str:
    job = example(PI, namespace=namespace, name="pi", **metadata)
    done = cluster.kubectl("create", "-f", "-", stdin=job, check=False)
    return done.stdout + done.stderr


def count_of_key(cluster: Cluster, namespace: str) -> int:
    """The number of labels and annotations with the key KEY in the stored job."""
    job = cluster.get("mpijob", "pi", "-n", namespace)
    templates = [replica["template"] for replica in job["spec"]["mpiReplicaSpecs"].values()]
    found = [one.get("metadata", {}).get(kind, {}) for one in (job, *templates) for kind in ("labels", "annotations")]
    return sum(KEY in mapping for mapping in found)


def test_injection_removed_by_the_last_webhook_is_reported(
    cluster: Cluster, namespace: str, required: str, tmp_path: Path
) -> None:
    """Both webhooks are called a second time, because each changes the result of the other."""
    with meddling(cluster, tmp_path, reinvocation="IfNeeded") as calls:
        output = create(cluster, namespace)
        assert len(calls) == 2
        if required == "deny":
            assert f'The MPIJob "pi" is invalid: {FIELD}: {MISSING}. {FIX} [{RULE}]\n' in output
            assert cluster.get("mpijobs", "-n", namespace)["items"] == []
            return
        assert "mpijob.kubeflow.org/pi created" in output
        assert WARNING in output
        assert count_of_key(cluster, namespace) == 0


def test_injection_removed_by_a_webhook_that_is_called_once_is_restored(
    cluster: Cluster, namespace: str, required: str, tmp_path: Path
) -> None:
    """Only the service's webhook is called a second time, and it restores the values."""
    with meddling(cluster, tmp_path, reinvocation="Never") as calls:
        output = create(cluster, namespace)
        assert len(calls) == 1
        assert "mpijob.kubeflow.org/pi created" in output
        assert f"[{RULE}]" not in output
        assert count_of_key(cluster, namespace) == 5
