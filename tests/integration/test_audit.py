"""The audit of stored jobs by a replica with only the permissions of the manifests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support import jobs
from tests.support.installation import default_overlay, service
from tests.support.installation.service import Replica
from tests.support.policies import policy_configmap
from tests.support.rare import rare

pytestmark = pytest.mark.timeout(600)

FEW = "rules: {worker-count: {max: 3}}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster with the default overlay, without its components and without registered webhooks."""
    with Cluster(log_dir=tmp_path_factory.mktemp("audit-logs")) as running:
        default_overlay.apply(running)
        yield running


@pytest.fixture(scope="module")
def account(cluster: Cluster) -> Path:
    return default_overlay.account(cluster)


def create(cluster: Cluster, namespace: str, name: str, workers: int) -> None:
    fields = {"metadata": {"name": name, "namespace": namespace}, "Worker.replicas": workers}
    cluster.kubectl("create", "-f", "-", stdin=jobs.changed(fields))


def metric(replica: Replica, namespace: str, rule: str = "worker-count", action: str = "deny") -> float:
    """The value of the metric that counts the jobs of a namespace that violate a rule."""
    wanted = f'mpijob_webhook_audit_violations{{action="{action}",namespace="{namespace}",rule="{rule}"}} '
    lines = [line for line in replica.ops("/metrics/jobs").splitlines() if line.startswith(wanted)]
    return float(lines[0].removeprefix(wanted)) if lines else 0


def running(cluster: Cluster, account: Path, *flags: str, name: str) -> Any:
    return service.running(cluster, *flags, "--kubeconfig", str(account), name=name, register=False)


@rare
def test_jobs_that_break_the_policy_are_counted(cluster: Cluster, account: Path) -> None:
    namespace = cluster.create_namespace()
    cluster.apply([policy_configmap(FEW)])
    create(cluster, namespace, "large", 5)
    create(cluster, namespace, "small", 2)
    with running(cluster, account, "--audit", name="audit") as replica:
        cluster.wait_for("the first audit", lambda: metric(replica, namespace) == 1 or None, timeout=60)
