"""Attacks through a namespace that a replica has not read."""

import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.api_proxy import ApiProxy, Trouble
from tests.controlplane.cluster import Cluster
from tests.support import jobs
from tests.support.installation import service
from tests.support.installation.service import review_of
from tests.support.object_api import kubeconfig
from tests.support.policies import NAMESPACE, policy_configmap

# API servers are stopped here, and asyncio does not close a connection whose peer dies in the TLS handshake.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
PREMIUM = "priority: 10\nnamespaces: {matchLabels: {tier: premium}}\nmode: warn"
OUTAGE_SECONDS = 20  # after such an outage, watches wait for up to half a minute before they connect again


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that these tests may break. A second policy weakens the first for namespaces with a label."""
    with Cluster(controller_manager=False, log_dir=tmp_path_factory.mktemp("attacked-cluster-logs")) as started:
        started.kubectl("create", "namespace", NAMESPACE)
        started.apply([policy_configmap("rules: {worker-count: {max: 3}}"), policy_configmap(PREMIUM, "premium")])
        yield started


def job_in(namespace: str) -> dict[str, Any]:
    return jobs.changed({"Worker.replicas": 4, "metadata.namespace": namespace, "metadata.name": "four"})


def create(cluster: Cluster, namespace: str) -> str:
    """kubectl's output for a job with one worker too many."""
    done = cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=job_in(namespace), check=False)
    return done.stdout + done.stderr


def refusal(replica: service.Replica, namespace: str) -> tuple[int, str]:
    """HTTP status and text of a review without a verdict."""
    with pytest.raises(urllib.error.HTTPError) as error:
        review_of(replica, job_in(namespace))
    return error.value.code, error.value.read().decode()


def test_job_in_namespace_created_right_after_an_outage_is_rejected(cluster: Cluster) -> None:
    with service.running(cluster, "--policy-namespace", NAMESPACE):
        cluster.stop_apiserver()
        time.sleep(OUTAGE_SECONDS)
        cluster.start_apiserver()
        for _ in range(3):
            namespace = cluster.create_namespace("new")
            answer = create(cluster, namespace)
            assert "4 workers, at most 3 allowed" in answer
            assert "created" not in answer
        premium = cluster.create_namespace("new", {"tier": "premium"})
        assert "created" in create(cluster, premium), "the policy for its labels applies at once"


def test_namespace_missing_from_the_cache_is_read_during_the_review(cluster: Cluster, tmp_path: Path) -> None:
    proxy = ApiProxy(cluster.kubeconfig)
    with proxy.running() as url:
        config = kubeconfig(tmp_path / "config", url)
        flags = ("--kubeconfig", str(config), "--policy-namespace", NAMESPACE)
        with service.running(cluster, *flags, name="lagging", register=False) as replica:
            with proxy.trouble(["namespaces"], Trouble.HANG):
                plain, premium = cluster.create_namespace("new"), cluster.create_namespace("new", {"tier": "premium"})
                rejected = review_of(replica, job_in(plain))
                assert not rejected["allowed"]
                assert "4 workers, at most 3 allowed" in rejected["status"]["message"]
                assert review_of(replica, job_in(premium))["allowed"]
                status, text = refusal(replica, "never-made")
                assert (status, text.partition(":")[0]) == (503, "the namespace could not be read (404)")
            with proxy.trouble(["namespaces", plain], Trouble.BROKEN):
                status, text = refusal(replica, plain)
                assert (status, text.partition(":")[0]) == (503, "the namespace could not be read (500)")
