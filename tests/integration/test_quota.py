"""Two replicas never admit more jobs than a quota allows, even if many jobs are created at the same moment."""

import json
import os
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from itertools import count
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import KEEP_RUNNING, gpu_nodes
from tests.support.installation.balancer import Backend, Balancer
from tests.support.installation.deployment import SELF_MANAGED, SPACE, Deployment
from tests.support.installation.load import ADMITTED, Client
from tests.support.jobs import changed
from tests.support.policies import quick_keys
from tests.support.rare import rare
from webhook.cluster.resources.reservations import LABEL
from webhook.controllers.reservations.limits import LIFETIME_SECONDS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

HOLDS, CLIENTS = 20, 50
SUBMITTED = int(os.environ.get("MPIJOB_QUOTA_JOBS", "150"))
GPUS = 2  # the GPUs of a job: two workers with one GPU each
EXCEEDED = "Quota exceeded"


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A separate cluster with operator and nodes. Admitted jobs never end."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(log_dir=tmp_path_factory.mktemp("quota")))
        cluster.start_scheduler()
        cluster.start_kwok(gpu_nodes(16))
        cluster.start_operator()
        made = Deployment(cluster, stack.enter_context(Balancer()))
        made.install()
        yield made
        for backend in list(made.balancer.backends):
            made.stop(backend)


@pytest.fixture
def replicas(deployment: Deployment) -> list[Backend]:
    while len(deployment.balancer.backends) < 2:
        deployment.start(*SELF_MANAGED, *quick_keys(deployment.cluster.dir))
    return list(deployment.balancer.backends)


@pytest.fixture
def quota(deployment: Deployment) -> Iterator[str]:
    """A namespace with a quota for `HOLDS` jobs. The status of the quota is set."""
    cluster = deployment.cluster
    name = cluster.create_namespace("quota")
    hard = {"requests.nvidia.com/gpu": str(HOLDS * GPUS)}
    metadata = {"name": "gpus", "namespace": name}
    cluster.apply([{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}])
    cluster.wait_for("the quota", lambda: used(cluster, name) == 0 or None)
    yield name
    cluster.kubectl("delete", "mpijobs", "--all", "-n", name, "--wait=false")
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def used(cluster: Cluster, namespace: str) -> int:
    status = cluster.get("resourcequota", "gpus", "-n", namespace).get("status", {})
    return int(status.get("used", {}).get("requests.nvidia.com/gpu", -1))


def job(namespace: str, name: str, **changes: Any) -> dict[str, Any]:
    """A job with two workers with a GPU each, and a launcher that never ends."""
    return changed(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec.slotsPerWorker": 1,
            "Worker.replicas": 2,
            "Worker.template.spec.containers.0.resources": {"limits": {"cpu": "1", "nvidia.com/gpu": 1}},
            "Launcher.template.metadata": {"annotations": {KEEP_RUNNING: "true"}},
            "Launcher.template.spec.containers.0.command": ["mpirun", "-np", "2", "train"],
            **changes,
        }
    )


def submit(
    deployment: Deployment, namespace: str, during: Callable[[], None] = lambda: None, *, tries: int = 60
) -> Counter[str]:
    """Create all jobs. Retries failed creations, except for jobs over the quota. Returns the count of each result."""
    path = f"/apis/kubeflow.org/v2beta1/namespaces/{namespace}/mpijobs"

    def create(client: Client, number: int) -> str:
        body = json.dumps(job(namespace, f"job-{number}")).encode()
        for _ in range(tries):
            answer = client.create(path, body)
            if answer == ADMITTED or "already exists" in answer:
                return ADMITTED
            if EXCEEDED in answer:
                return EXCEEDED
            time.sleep(0.2)
        return answer

    def create_some(first: int) -> list[str]:
        with closing(Client(deployment.cluster.kubeconfig, dry_run=False)) as client:
            return [create(client, number) for number in range(first, SUBMITTED, CLIENTS)]

    with ThreadPoolExecutor(CLIENTS) as pool:
        futures = [pool.submit(create_some, first) for first in range(CLIENTS)]
        during()
        return Counter(answer for future in futures for answer in future.result())


def ledgers(cluster: Cluster) -> list[Any]:
    found: list[Any] = cluster.get("leases", "-n", SPACE, "-l", f"{LABEL}=true")["items"]
    return found


def assert_settled(cluster: Cluster, namespace: str, held: int) -> None:
    """Check that `held` jobs and their pods are stored, that the quota counts them, and that no reservation is left."""
    stored = cluster.get("mpijobs", "-n", namespace)["items"]
    assert len(stored) == held
    cluster.wait_for("all workers", lambda: workers(cluster, namespace) == held * 2 or None)
    cluster.wait_for("the quota", lambda: used(cluster, namespace) == held * GPUS or None)
    names = {each["metadata"]["name"] for each in stored}
    assert {each["metadata"]["name"] for each in cluster.get("services", "-n", namespace)["items"]} == names
    cluster.wait_for("an empty ledger", lambda: not ledgers(cluster) or None)


def workers(cluster: Cluster, namespace: str) -> int:
    return len(cluster.get("pods", "-n", namespace, "-l", "training.kubeflow.org/job-role=worker")["items"])


def test_quota_is_used_completely_by_simultaneous_jobs(
    deployment: Deployment, replicas: list[Backend], quota: str
) -> None:
    assert submit(deployment, quota) == {ADMITTED: HOLDS, EXCEEDED: SUBMITTED - HOLDS}
    assert_settled(deployment.cluster, quota, HOLDS)


def kill_once_something_is_reserved(deployment: Deployment, replica: Backend) -> None:
    """Kill the replica after the first reservation. Some reviews that have made a reservation then get no reply."""
    deployment.cluster.wait_for("the first reservation", lambda: ledgers(deployment.cluster), timeout=30)
    deployment.stop(replica, kill=True)


@rare
def test_reservation_of_a_killed_replica_expires_within_seconds(
    deployment: Deployment, replicas: list[Backend], quota: str
) -> None:
    """Users do not retry jobs whose reviews got no reply. New jobs get the quota that the lost jobs had reserved."""
    cluster = deployment.cluster
    submit(deployment, quota, partial(kill_once_something_is_reserved, deployment, replicas[0]), tries=1)
    numbers = count()

    def full() -> bool | None:
        created = cluster.kubectl("create", "-f", "-", stdin=job(quota, f"late-{next(numbers)}"), check=False)
        assert created.returncode == 0 or EXCEEDED in created.stderr, created.stderr
        return len(cluster.get("mpijobs", "-n", quota)["items"]) == HOLDS or None

    cluster.wait_for("the quota to be used up", full, timeout=LIFETIME_SECONDS + 10)
    assert_settled(cluster, quota, HOLDS)


def test_quota_of_a_deleted_job_is_free_at_once(deployment: Deployment, replicas: list[Backend], quota: str) -> None:
    """A user who deletes and corrects a job does not have to wait until the old job's reservation expires."""
    cluster = deployment.cluster
    whole = {"Worker.replicas": HOLDS * GPUS, "Launcher.template.spec.containers.0.command": ["train"]}

    def created() -> bool | None:
        """None while the replica still sees the deleted job or its pods and therefore rejects the new job."""
        outcome = cluster.kubectl("create", "-f", "-", stdin=job(quota, "whole", **whole), check=False)
        # The message depends on whether the replica has seen the deletion request.
        advice = r'"whole\S*" (is still being deleted|belongs to a former job)'
        assert outcome.returncode == 0 or re.search(advice, outcome.stderr), outcome.stderr
        return outcome.returncode == 0 or None

    for _ in range(3):
        cluster.wait_for("the replica to see that the pods are deleted", created)
        cluster.kubectl("delete", "mpijob", "whole", "-n", quota)
        # The garbage collector discovers new kinds such as MPIJob every 30 seconds.
        cluster.wait_for("the deletion of the pods", lambda: not cluster.get("pods", "-n", quota)["items"] or None)


def test_quota_applies_while_reservations_cannot_be_written(
    deployment: Deployment, replicas: list[Backend], quota: str
) -> None:
    cluster = deployment.cluster
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-leases"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["coordination.k8s.io"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["leases"],
                    }
                ]
            },
            "validations": [{"expression": "!object.metadata.name.startsWith('quota-')"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-leases"},
        "spec": {"policyName": "no-leases", "validationActions": ["Deny"]},
    }
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "quota-probe", "namespace": SPACE},
    }
    cluster.apply([policy, binding])
    try:
        probe = ("create", "--dry-run=server", "-f", "-")
        cluster.wait_for("the policy", lambda: cluster.kubectl(*probe, stdin=lease, check=False).returncode)
        cluster.kubectl("create", "-f", "-", stdin=job(quota, "train"))
        outcome = cluster.kubectl(
            "create", "-f", "-", stdin=job(quota, "large", **{"Worker.replicas": 90}), check=False
        )
        assert EXCEEDED in outcome.stderr
    finally:
        cluster.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-leases")
    metrics = "".join(replica_metrics(backend) for backend in replicas)
    assert 'mpijob_webhook_quota_ledger_total{outcome="unavailable"}' in metrics


def replica_metrics(backend: Backend) -> str:
    with urllib.request.urlopen(f"{backend.ops_url}/metrics", timeout=10) as response:
        text: str = response.read().decode()
        return text
