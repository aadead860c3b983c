"""`serve --register` with a real API server: the service creates its webhook configurations and later deletes them."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.service import example
from webhook.installation.registration import BY_REGISTER, MADE_BY, NAME, RESOURCES

PI = assets().upstream_examples["pi"]
SERVE = [sys.executable, "-W", "error", "-m", "webhook", "serve", "--register", "--drain-seconds", "0"]


def configurations(cluster: Cluster) -> dict[str, Any]:
    """The service's existing webhook configurations, by resource."""
    found = {resource: cluster.get(resource)["items"] for resource in RESOURCES.values()}
    return {resource: item for resource, items in found.items() for item in items if item["metadata"]["name"] == NAME}


@pytest.fixture
def nothing_left(cluster: Cluster) -> Iterator[None]:
    """Check that no webhook configuration of the service exists. Afterwards delete those that the test has left."""
    assert configurations(cluster) == {}
    yield
    for resource in configurations(cluster):
        cluster.kubectl("delete", resource, NAME)


def apply_pi(cluster: Cluster, namespace: str, name: str, workers: int = 2) -> subprocess.CompletedProcess[str]:
    job = example(PI, namespace=namespace, name=name)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
    return cluster.kubectl("apply", "-f", "-", stdin=job, check=False)


@pytest.mark.usefixtures("nothing_left")
def test_service_is_registered_and_called_until_it_is_stopped(cluster: Cluster, namespace: str) -> None:
    with service.running(cluster):
        found = configurations(cluster)
        assert set(found) == set(RESOURCES.values())
        assert {item["metadata"]["labels"][MADE_BY] for item in found.values()} == {BY_REGISTER}

        # The real API server accepts the certificate and the patch.
        applied = apply_pi(cluster, namespace, "pi")
        assert applied.returncode == 0, applied.stderr
        stored = cluster.get("mpijob", "pi", "-n", namespace)
        assert stored["metadata"]["labels"]["training.kubeflow.org/job-type"] == "mpijob"
        for role in ("Launcher", "Worker"):
            template = stored["spec"]["mpiReplicaSpecs"][role]["template"]
            assert template["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"

        refused = apply_pi(cluster, namespace, "alone", workers=1)
        assert refused.returncode == 1
        # kubectl prints "is invalid", because the rejection has causes.
        assert 'The MPIJob "alone" is invalid: spec.mpiReplicaSpecs[Worker].replicas: 1 worker' in refused.stderr
        cluster.wait_for(
            "the log line of the review",
            lambda: (
                any(line["name"] == "alone" and line["webhook"] == "validate" for line in service.decisions(cluster))
                or None
            ),
        )
        log = service.decisions(cluster)
        assert {(line["webhook"], line["allowed"]) for line in log if line["name"] == "pi"} == {
            ("mutate", True),
            ("validate", True),
        }
        assert [line["denied"] for line in log if (line["name"], line["webhook"]) == ("alone", "validate")] == [
            ["worker-count"]
        ]
    assert configurations(cluster) == {}
    assert apply_pi(cluster, namespace, "after", workers=1).returncode == 0  # the webhook is no longer called


@pytest.mark.usefixtures("nothing_left")
def test_leftovers_of_a_killed_run_are_replaced(cluster: Cluster, namespace: str) -> None:
    with service.running(cluster):
        cluster.programs[service.NAME].stop()  # killed, so that it cannot remove its configurations
        leftovers = configurations(cluster)
        assert set(leftovers) == set(RESOURCES.values())
    with service.running(cluster):
        assert apply_pi(cluster, namespace, "pi").returncode == 0
        now = configurations(cluster)
        assert all(now[resource]["metadata"]["uid"] != leftovers[resource]["metadata"]["uid"] for resource in leftovers)
    assert configurations(cluster) == {}


@pytest.mark.usefixtures("nothing_left")
def test_interrupted_program_removes_its_configurations(cluster: Cluster) -> None:
    process = subprocess.Popen(
        [*SERVE, "--drain-seconds", "3600", "--kubeconfig", str(cluster.kubeconfig)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process:
        for line in process.stderr:
            if '"event":"ready"' in line:
                assert set(configurations(cluster)) == set(RESOURCES.values())
                process.send_signal(signal.SIGINT)
            if '"event":"draining"' in line:
                process.send_signal(signal.SIGINT)
    assert process.returncode == 128 + signal.SIGINT
    assert configurations(cluster) == {}
