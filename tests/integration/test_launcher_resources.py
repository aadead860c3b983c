"""A launcher without resources gets defaults in a namespace with a quota on resources, so its pod is created."""

from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.jobs import REMOVE, changed

QUOTA = {"requests.cpu": "100", "requests.memory": "1Ti", "limits.memory": "1Ti"}


@pytest.mark.usefixtures("webhook")
@pytest.mark.timeout(240)
def test_launcher_without_resources_is_created_in_a_namespace_with_a_quota(
    operator_cluster: Cluster, namespace: str
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": namespace},
        "spec": {"hard": QUOTA},
    }
    operator_cluster.kubectl("create", "-f", "-", stdin=quota)
    operator_cluster.wait_for(
        "the quota to be counted",
        lambda: operator_cluster.get("resourcequota", "compute", "-n", namespace).get("status", {}).get("used"),
    )
    job = changed(
        {
            "metadata.namespace": namespace,
            "Worker.replicas": 2,
            "Launcher.template.spec.containers.0.resources": REMOVE,
            "Worker.template.spec.containers.0.resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        }
    )

    def get(*what: str) -> Any:
        return operator_cluster.get(*what, "-n", namespace)

    # The replica sees the quota after a moment, and injects nothing before that.
    dry_run = ("create", "--dry-run=server", "-o", "yaml", "-f", "-")
    operator_cluster.wait_for(
        "the injection", lambda: "512Mi" in operator_cluster.kubectl(*dry_run, stdin=job, check=False).stdout or None
    )
    operator_cluster.kubectl("create", "-f", "-", stdin=job)
    launcher = operator_cluster.wait_for(
        "the launcher's pod",
        lambda: next(
            (pod for pod in get("pods")["items"] if pod["metadata"]["name"].startswith("train-launcher")), None
        ),
        timeout=60,
    )
    resources = launcher["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}}
