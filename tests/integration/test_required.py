"""A required injection that another webhook takes out again, on the real API server."""

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
from webhook.api.annotations import SKIP
from webhook.injections.istio import KEY

pytestmark = pytest.mark.timeout(300)
PI = assets().upstream_examples["pi"]
FIELD = f"spec.mpiReplicaSpecs[Launcher].template.metadata.labels[{KEY}]"
MISSING = 'the injection "istio" is required and not in the job, and 4 more of its values are missing too'
WARNING = (
    'Warning: spec.mpiReplicaSpecs[Launcher]: the injection "istio" is required and n...ts values are missing too '
    f"[{RULE}]\n"
)
FIX = "Submit it again; if that does not help, another webhook removes it: ask your administrator."


@pytest.fixture(scope="module", params=["deny", "warn", "off"])
def required(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[str]:
    """The action for a missing injection, with the service that has this as its policy."""
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(f"{HEADER}injections: {{istio: {{required: {request.param}}}}}\n")
    with service.running(cluster, "--policy", str(policy)):
        yield request.param


def create(cluster: Cluster, namespace: str, **metadata: Any) -> str:
    """What kubectl said."""
    job = example(PI, namespace=namespace, name="pi", **metadata)
    done = cluster.kubectl("create", "-f", "-", stdin=job, check=False)
    return done.stdout + done.stderr


def places(cluster: Cluster, namespace: str) -> int:
    """How often the stored job has the key."""
    job = cluster.get("mpijob", "pi", "-n", namespace)
    templates = [replica["template"] for replica in job["spec"]["mpiReplicaSpecs"].values()]
    found = [one.get("metadata", {}).get(kind, {}) for one in (job, *templates) for kind in ("labels", "annotations")]
    return sum(KEY in mapping for mapping in found)


def test_the_webhook_that_has_the_last_word_took_it_out(
    cluster: Cluster, namespace: str, required: str, tmp_path: Path
) -> None:
    """Both are called a second time, because each changes what the other left."""
    with meddling(cluster, tmp_path, reinvocation="IfNeeded") as calls:
        said = create(cluster, namespace)
        assert len(calls) == 2
        if required == "deny":
            assert f'The MPIJob "pi" is invalid: {FIELD}: {MISSING}. {FIX} [{RULE}]\n' in said
            assert cluster.get("mpijobs", "-n", namespace)["items"] == []
            return
        assert "mpijob.kubeflow.org/pi created" in said
        assert (WARNING in said) is (f"[{RULE}]" in said) is (required == "warn")
        assert places(cluster, namespace) == 0


def test_a_webhook_that_is_called_once_takes_out_nothing(
    cluster: Cluster, namespace: str, required: str, tmp_path: Path
) -> None:
    """Only ours is called a second time, and restores."""
    with meddling(cluster, tmp_path, reinvocation="Never") as calls:
        said = create(cluster, namespace)
        assert len(calls) == 1
        assert "mpijob.kubeflow.org/pi created" in said
        assert f"[{RULE}]" not in said
        assert places(cluster, namespace) == 5


def test_job_without_a_required_injection_is_rejected(cluster: Cluster, namespace: str, required: str) -> None:
    said = create(cluster, namespace, annotations={SKIP: "istio"})
    assert "mpijob.kubeflow.org/pi created" in said
    assert (f'{SKIP}: "istio" cannot be skipped' in said) is (required != "off")
    assert places(cluster, namespace) == (0 if required == "off" else 5)
