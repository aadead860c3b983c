"""A run with two replicas behind a real API server, teams that submit jobs, and Prometheus."""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import KEEP_RUNNING, gpu_nodes
from tests.support import prometheus
from tests.support.installation.balancer import Balancer
from tests.support.installation.deployment import SELF_MANAGED, Deployment
from tests.support.installation.load import Client
from tests.support.jobs import changed
from tests.support.namespaces import namespace
from tests.support.policies import policy_configmap
from tests.support.prometheus import Prometheus
from tests.support.quota_objects import quota

OPTIONS = ("--audit", "--deadline-events", "--job-metrics", "--network-policies")
TEAMS = ("team-a", "team-b", "team-c")
POLICY = """\
sshKeys: ed25519
rules:
  network-policy: {posture: default}
  worker-count: {max: 16}
  custom:
  - id: whole-nodes
    expression: job.gpusPerWorker <= 8
    message: a worker has more GPUs than a node
exemptions:
- {rules: [worker-count], namespaces: [team-c], reason: they try small}
"""
STAYS = {"Launcher.template.metadata": {"annotations": {KEEP_RUNNING: "yes"}}}
SMALL = {"Worker.template.spec.containers.0.resources": {"limits": {"cpu": "1", "nvidia.com/gpu": 1}}}
TWO = {
    "Worker.replicas": 2,
    "spec.slotsPerWorker": 1,
    "Launcher.template.spec.containers.0.command": ["mpirun", "-np", "2", "a"],
}
GOOD = {**SMALL, **TWO}
LATEST = {"Worker.template.spec.containers.0.image": "registry.example.com/ml/train:latest"}
JOBS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("team-a", GOOD),
    ("team-b", {**GOOD, **STAYS, "spec.runPolicy.activeDeadlineSeconds": 10}),
    ("team-a", {"Worker.replicas": 1}),
    ("team-c", {**GOOD, "Worker.replicas": 1}),
    ("team-b", {"spec.slotsPerWorker": 0}),
    ("team-c", {**GOOD, **STAYS}),
    ("team-b", {"Worker.replicas": 64}),
    ("team-a", {**GOOD, **STAYS, "spec.runPolicy.activeDeadlineSeconds": 3600}),
    ("team-b", {**GOOD, **LATEST}),
    ("team-c", {**GOOD, "spec.runPolicy.suspend": True, **LATEST}),
)


@dataclass(frozen=True)
class Run:
    cluster: Cluster
    prometheus: Prometheus


@contextmanager
def real_run(log_dir: Path) -> Iterator[Run]:
    """A run with all programs, a policy, namespaces and quotas. No job has been submitted."""
    with Cluster(log_dir=log_dir) as cluster, Balancer() as balancer:
        cluster.start_scheduler()
        cluster.start_kwok(gpu_nodes(8))
        cluster.start_operator()
        deployment = Deployment(cluster, balancer)
        deployment.install()
        replicas = {}
        for n in range(2):
            replicas[f"mpijob-webhook-{n}"] = deployment.start(*SELF_MANAGED, *OPTIONS).ops_url
        run = Run(cluster, prometheus.start(cluster, replicas))
        cluster.apply([policy_configmap(POLICY), *itertools.chain.from_iterable(map(_namespace, TEAMS))])
        yield run
        for backend in list(balancer.backends):
            deployment.stop(backend, kill=True)


def submit(run: Run, rounds: int, pause: float) -> None:
    """Submit each job `rounds` times, with a pause after each submission."""
    client = Client(run.cluster.kubeconfig, dry_run=False)
    for _, (team, changes) in itertools.product(range(rounds), JOBS):
        job = changed({**changes, "metadata": {"generateName": "train-", "namespace": team}})
        client.create(f"/apis/kubeflow.org/v2beta1/namespaces/{team}/mpijobs", json.dumps(job).encode())
        time.sleep(pause)
    client.close()


def _namespace(name: str) -> list[dict[str, Any]]:
    """A namespace with a quota that the submitted jobs exceed."""
    return [namespace(name), quota({"requests.nvidia.com/gpu": "24"}, name="gpus", namespace=name)]
