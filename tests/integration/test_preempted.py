"""The mutating hook explains faults for which the API server rejects a job before it calls the validating hook."""

from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation.service import example

pytestmark = [pytest.mark.usefixtures("webhook"), pytest.mark.timeout(300)]
PI = assets().upstream_examples["pi"]


def said(cluster: Cluster, job: dict[str, Any]) -> str:
    done = cluster.kubectl("create", "-f", "-", stdin=job, check=False)
    assert done.returncode == 1
    assert "injected: " in done.stderr
    assert "mpijob.training.openshift.io" not in done.stderr, "the validating hook was asked"
    return done.stderr


def test_a_name(cluster: Cluster, namespace: str) -> None:
    words = said(cluster, example(PI, namespace=namespace, name="resnet_50"))
    advice = "Use lower case letters, digits and -, a letter first."
    assert f'Warning: metadata.name: "resnet_50" contains "_". {advice} [upstream-contract]' in words
    assert "a lowercase RFC 1123 subdomain must consist of" in words


def test_a_quantity(cluster: Cluster, namespace: str) -> None:
    job = example(PI, namespace=namespace, name="resnet")
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["resources"] = {"limits": {"memory": "16GB"}}
    words = said(cluster, job)
    assert '"16GB" is not a quantity. Write 16Gi or 16G. [upstream-contract]' in words
    assert "should match '^(\\+|-)?" in words
