"""The API server rejects some jobs before it calls the validating hook. The mutating hook warns about such jobs."""

from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation.service import example

pytestmark = [pytest.mark.usefixtures("webhook"), pytest.mark.timeout(300)]
PI = assets().upstream_examples["pi"]


def rejection(cluster: Cluster, job: dict[str, Any]) -> str:
    done = cluster.kubectl("create", "-f", "-", stdin=job, check=False)
    assert done.returncode == 1
    assert "injected: " in done.stderr
    assert "mpijob.training.openshift.io" not in done.stderr, "the validating hook must not be called"
    return done.stderr


def test_invalid_name_is_explained(cluster: Cluster, namespace: str) -> None:
    output = rejection(cluster, example(PI, namespace=namespace, name="resnet_50"))
    advice = "Use lower case letters, digits and -, a letter first."
    assert f'Warning: metadata.name: "resnet_50" contains "_". {advice} [upstream-contract]' in output
    assert "a lowercase RFC 1123 subdomain must consist of" in output


def test_invalid_quantity_is_explained(cluster: Cluster, namespace: str) -> None:
    job = example(PI, namespace=namespace, name="resnet")
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["resources"] = {"limits": {"memory": "16GB"}}
    output = rejection(cluster, job)
    assert '"16GB" is not a quantity. Write 16Gi or 16G. [upstream-contract]' in output
    assert "should match '^(\\+|-)?" in output
