"""A quantity that the schema accepts but Go cannot decode stops the operator for all jobs. The service rejects it."""

from collections.abc import Iterator

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster, has_condition
from tests.support.installation import service
from tests.support.installation.service import example
from tests.support.jobs import changed
from tests.support.rare import rare

PI = assets().upstream_examples["pi"]


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A cluster with an operator that may break."""
    with Cluster() as cluster:
        cluster.start_operator()
        yield cluster


@rare
@pytest.mark.timeout(240)
def test_job_that_stops_the_operator_is_rejected(own_cluster: Cluster) -> None:
    cluster = own_cluster
    namespace = cluster.create_namespace()
    limits = {"Worker.template.spec.containers.0.resources.limits": {"cpu": "1e1.5"}}
    unreadable = changed(limits, example(PI, namespace=namespace, name="unreadable"))

    with service.running(cluster):
        refused = cluster.kubectl("create", "-f", "-", stdin=unreadable, check=False)
        assert "resources.limits[cpu]" in refused.stderr
        assert "[upstream-contract]" in refused.stderr

    cluster.kubectl("create", "-f", "-", stdin=unreadable)
    operator = cluster.programs["mpi-operator"]
    cluster.wait_for(
        "the operator to fail", lambda: "failed to list *v2beta1.MPIJob: quantities" in operator.log.read_text() or None
    )
    cluster.kubectl("create", "-f", "-", stdin=example(PI, namespace=namespace, name="innocent"))
    failures = operator.log.read_text().count("failed to list")
    cluster.wait_for(
        "the operator to fail again", lambda: operator.log.read_text().count("failed to list") > failures or None
    )
    assert "status" not in cluster.get("mpijob", "innocent", "-n", namespace)

    cluster.kubectl("delete", "mpijob", "unreadable", "-n", namespace)
    innocent = ("mpijob", "innocent", "-n", namespace)
    cluster.wait_for(
        "the operator to process the other job",
        lambda: has_condition(cluster.get(*innocent), "Created") or None,
        timeout=120,
    )
