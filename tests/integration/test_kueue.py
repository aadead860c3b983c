"""The real Kueue with the real operator: a queued job waits, is admitted and runs."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.controlplane import kueue
from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import gpu_nodes
from tests.support.jobs import changed
from tests.support.rare import rare

pytestmark = rare

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def pi(cluster: Cluster, namespace: str, name: str, queue: str) -> dict[str, Any]:
    job: dict[str, Any] = yaml.safe_load(cluster.assets.upstream_examples["pi"].read_text())
    return changed({"metadata": {"name": name, "namespace": namespace, "labels": {QUEUE_LABEL: queue}}}, job)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster, because Kueue's webhooks would be called in all other tests."""
    with Cluster(log_dir=tmp_path_factory.mktemp("kueue")) as running:
        running.start_scheduler()
        running.start_kwok(gpu_nodes(8))
        running.start_operator()
        running.start_kueue()
        yield running


@pytest.fixture
def queue(cluster: Cluster, namespace: str) -> str:
    """The name of a LocalQueue. Its flavor, ClusterQueue and Cohort have the name of its namespace."""
    quotas: kueue.Quotas = {namespace: {"cpu": 8, "memory": "16Gi"}}
    cluster.apply(
        [
            kueue.cohort(namespace),
            kueue.resource_flavor(namespace, node_labels={"kubernetes.io/os": "linux"}),
            kueue.cluster_queue(namespace, quotas=quotas, cohort=namespace),
            kueue.local_queue("training", namespace=namespace, cluster_queue=namespace),
        ]
    )
    queue = ("localqueue", "training", "-n", namespace)
    cluster.wait_for("the queue to be active", lambda: has_condition(cluster.get(*queue), "Active") or None)
    return "training"


def test_queued_job_is_suspended_admitted_and_run(cluster: Cluster, namespace: str, queue: str) -> None:
    manifest = pi(cluster, namespace, "queued", queue)
    assert not manifest["spec"]["runPolicy"].get("suspend")
    stored = cluster.kubectl("create", "-f", "-", "-o", "jsonpath={.spec.runPolicy.suspend}", stdin=manifest)
    assert stored.stdout == "true"

    job = ("mpijob", "queued", "-n", namespace)
    cluster.wait_for("the job to succeed", lambda: has_condition(cluster.get(*job), "Succeeded") or None, timeout=60)
    assert cluster.get(*job)["spec"]["runPolicy"]["suspend"] is False

    def workload() -> dict[str, Any] | None:
        (found,) = cluster.get("workloads", "-n", namespace)["items"]
        return found if has_condition(found, "Finished") else None

    done = cluster.wait_for("the workload to be finished", workload)
    assert has_condition(done, "Admitted")
    assert done["spec"]["queueName"] == queue
    assert done["status"]["admission"]["clusterQueue"] == namespace


def test_job_above_the_quota_stays_suspended(cluster: Cluster, namespace: str, queue: str) -> None:
    manifest = changed({"Worker.replicas": 9}, pi(cluster, namespace, "too-big", queue))
    cluster.kubectl("create", "-f", "-", stdin=manifest)

    def refusal() -> str | None:
        items = cluster.get("workloads", "-n", namespace)["items"]
        conditions = [condition for item in items for condition in item.get("status", {}).get("conditions", ())]
        return next((condition["message"] for condition in conditions if condition["type"] == "QuotaReserved"), None)

    assert "insufficient quota for cpu" in cluster.wait_for("Kueue's verdict", refusal)
    assert cluster.get("mpijob", "too-big", "-n", namespace)["spec"]["runPolicy"]["suspend"] is True
    assert cluster.get("pods", "-n", namespace)["items"] == []


def test_both_api_versions_and_the_webhooks_of_kueue_work(cluster: Cluster, namespace: str, queue: str) -> None:
    config_map = cluster.get("configmap", kueue.CONFIG_MAP, "-n", kueue.NAMESPACE)
    config = yaml.safe_load(config_map["data"][kueue.CONFIG_KEY])
    assert config["apiVersion"] == "config.kueue.x-k8s.io/v1beta2"
    assert config["integrations"]["frameworks"] == list(kueue.FRAMEWORKS)

    older = cluster.get("localqueues.v1beta1.kueue.x-k8s.io", queue, "-n", namespace)  # converted by Kueue
    assert older["apiVersion"] == "kueue.x-k8s.io/v1beta1"

    negative = kueue.cluster_queue("negative", quotas={namespace: {"cpu": -1}})
    refused = cluster.kubectl("create", "-f", "-", stdin=negative, check=False)
    assert 'admission webhook "vclusterqueue.kb.io" denied the request' in refused.stderr
