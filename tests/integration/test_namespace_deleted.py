"""`kubectl delete namespace` for the service's namespace finishes although the service no longer runs."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.installation.balancer import Balancer
from tests.support.installation.deployment import SELF_MANAGED, SPACE, Deployment
from tests.support.rare import rare
from webhook.cluster.resources.reservations import LABEL as RESERVATIONS
from webhook.policy.store import LABEL

pytestmark = [rare, pytest.mark.cluster, pytest.mark.timeout(300)]

POLICY = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "platform", "namespace": SPACE, "labels": {LABEL: "true"}},
    "data": {"policy.yaml": "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"},
}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "quota-team", "namespace": SPACE, "labels": {RESERVATIONS: "true"}},
}


@pytest.fixture
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A separate cluster with one replica, and with policies and reservations in the service's namespace."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(log_dir=tmp_path_factory.mktemp("deleted")))
        made = Deployment(cluster, stack.enter_context(Balancer()))
        made.install()
        made.start(*SELF_MANAGED)
        cluster.apply([POLICY, LEASE])
        yield made
        for backend in list(made.balancer.backends):
            made.stop(backend)


def test_namespace_is_deleted_with_its_policies(deployment: Deployment) -> None:
    deployment.stop(deployment.balancer.backends[0], kill=True)
    deployment.cluster.kubectl("delete", "namespace", SPACE, "--timeout=120s", timeout=150)
    left = deployment.cluster.kubectl("get", "namespace", SPACE, check=False)
    assert "NotFound" in left.stderr
