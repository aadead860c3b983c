"""Jobs, and namespaces with or without queues, in a cluster with the real Kueue."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import KEEP_RUNNING
from tests.support import kueue_objects
from tests.support.installation import service
from tests.support.installation.service import example
from tests.support.policies import NAMESPACE, policy_configmap, quick_keys

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
ASK = "training.openshift.io/queue"
MANAGED = {"queued": "yes"}
"""The labels of the namespaces that Kueue manages."""


@contextmanager
def with_kueue(
    log_dir: Path, nodes: Sequence[dict[str, Any]] = (), policy: str = "", code: Path | None = None
) -> Iterator[Cluster]:
    """A cluster with the operator, the service and these nodes. Kueue manages the namespaces with the labels MANAGED.

    `policy` is the service's policy. `code` is a folder with a different `webhook` package.
    """
    with Cluster(log_dir=log_dir) as running:
        if nodes:
            running.start_scheduler()
            running.start_kwok(list(nodes))
        running.start_operator()
        running.start_kueue(settings={"managedJobsNamespaceSelector": {"matchLabels": MANAGED}})
        running.kubectl("create", "namespace", NAMESPACE)
        if policy:
            running.apply([policy_configmap(policy)])
        service.start(running, *quick_keys(running.dir), code=code)
        try:
            yield running
        finally:
            service.stop(running)


@dataclass(frozen=True)
class Job:
    cluster: Cluster
    namespace: str
    name: str

    def get(self) -> dict[str, Any]:
        job: dict[str, Any] = self.cluster.get("mpijob", self.name, "-n", self.namespace)
        return job

    @property
    def queue(self) -> str | None:
        label: str | None = (self.get()["metadata"].get("labels") or {}).get(QUEUE_LABEL)
        return label

    @property
    def suspended(self) -> bool | None:
        suspend: bool | None = self.get()["spec"]["runPolicy"].get("suspend")
        return suspend

    def wait_for(self, condition: str) -> None:
        self.cluster.wait_for(
            f"{self.name} to be {condition}", lambda: has_condition(self.get(), condition) or None, timeout=90
        )

    def pods(self) -> list[dict[str, Any]]:
        selector = f"training.kubeflow.org/job-name={self.name}"
        pods = self.cluster.get("pods", "-n", self.namespace, "-l", selector)["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def workload(self) -> dict[str, Any] | None:
        """Kueue's Workload for the job; None if there is none."""
        workloads: list[dict[str, Any]] = self.cluster.get("workloads", "-n", self.namespace)["items"]
        for workload in workloads:
            if any(owner["name"] == self.name for owner in workload["metadata"].get("ownerReferences", ())):
                return workload
        return None

    def patch(self, patch: str) -> str:
        return self.cluster.attempt("patch", "mpijob", self.name, "-n", self.namespace, "--type=merge", "-p", patch)


def create(cluster: Cluster, manifest: dict[str, Any]) -> tuple[Job, str]:
    """Create the job. Returns the job and the warnings."""
    metadata = manifest["metadata"]
    done = cluster.kubectl("create", "-f", "-", stdin=manifest)
    return Job(cluster, metadata["namespace"], metadata["name"]), done.stderr


def pi(namespace: str, name: str, *, cpu: int = 1, runs_on: bool = True, **metadata: Any) -> dict[str, Any]:
    """A job whose launcher and two workers request `cpu` cores each. With `runs_on`, the job never ends."""
    job = example(assets().upstream_examples["pi"], name=name, namespace=namespace, **metadata)
    for role in ("Launcher", "Worker"):
        template = job["spec"]["mpiReplicaSpecs"][role]["template"]
        template["spec"]["containers"][0]["resources"] = {"limits": {"cpu": cpu, "memory": "1Gi"}}
        if runs_on:
            template["metadata"] = {"annotations": {KEEP_RUNNING: "yes"}}
    job["spec"]["runPolicy"] = {"cleanPodPolicy": "Running"}
    return job


def any_job(chosen: random.Random, namespace: str, name: str) -> dict[str, Any]:
    """A random job, with or without a queue, a suspension by the user, and a priority class that does not exist."""
    queue = chosen.choice([None, None, "training", "other", "default", "nowhere", ""])
    labels = {PRIORITY_LABEL: "gone"} if chosen.random() < 0.15 else {"app": "train"}
    job = pi(namespace, name, annotations={} if queue is None else {ASK: queue}, labels=labels)
    policy = job["spec"]["runPolicy"]
    suspend = chosen.choice([None, None, None, False, True])
    if suspend is not None:
        policy["suspend"] = suspend
    if chosen.random() < 0.2:
        policy["schedulingPolicy"] = {"priorityClass": "gone"}
    if chosen.random() < 0.2:
        del job["spec"]["runPolicy"]
    return job


def managed_namespace(cluster: Cluster) -> str:
    """Create a namespace that Kueue manages, with the LocalQueue `training` for 8 cores.

    Returns after the service has seen the queue.
    """
    name = cluster.create_namespace("managed", MANAGED)
    add_queue(cluster, name, cpu=8)
    settle(cluster, name, "training")
    return name


def add_queue(
    cluster: Cluster,
    namespace: str,
    queue: str = "training",
    *,
    cpu: int,
    devices: Mapping[str, int] | None = None,
    **spec: Any,
) -> None:
    """Create a LocalQueue, a ClusterQueue and a flavor. Without `stopPolicy`, wait until the LocalQueue is active."""
    name, quotas = f"{namespace}-{queue}", {"cpu": cpu, "memory": "100Gi", **(devices or {})}
    cluster.apply(
        [
            kueue_objects.flavor(name, {"kubernetes.io/os": "linux"}),
            kueue_objects.cluster_queue(name, {name: quotas}, **spec),
            kueue_objects.local_queue(queue, name, namespace=namespace),
        ]
    )
    if not spec.get("stopPolicy"):
        active = lambda: has_condition(cluster.get("localqueue", queue, "-n", namespace), "Active") or None  # noqa: E731
        cluster.wait_for("the queue to be active", active)


def settle(cluster: Cluster, namespace: str, queue: str) -> None:
    """Wait until the service has seen that the queue is active."""
    probe = pi(namespace, "probe", annotations={ASK: queue})
    command = ("create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.spec.runPolicy.suspend}")
    cluster.wait_for("the service to see", lambda: cluster.kubectl(*command, stdin=probe).stdout == "true" or None)


@dataclass(frozen=True)
class Place:
    """A namespace with queues. A job gets a queue only if Kueue manages the namespace and a queue accepts jobs."""

    managed: bool
    queues: dict[str, str]
    """States of queues by name: `fine`, `held`, `gone` (missing ClusterQueue), `foreign` (for other namespaces)."""

    @property
    def usable(self) -> str:
        """The name of a queue that accepts jobs; empty if there is none."""
        return next((name for name, state in self.queues.items() if self.managed and state == "fine"), "")

    def build(self, cluster: Cluster) -> str:
        """Create the namespace. Returns its name."""
        namespace = cluster.create_namespace("mix", MANAGED if self.managed else {})
        for queue, state in self.queues.items():
            if state == "gone":
                cluster.apply([kueue_objects.local_queue(queue, "gone", namespace=namespace)])
            else:
                spec: dict[str, Any] = {
                    "fine": {},
                    "held": {"stopPolicy": "Hold"},
                    "foreign": {"namespaceSelector": {"matchLabels": {"no": "one"}}},
                }[state]
                add_queue(cluster, namespace, queue, cpu=1000, **spec)
        return namespace


PLACES = (
    Place(managed=True, queues={"training": "fine"}),
    Place(managed=True, queues={"training": "fine", "other": "held"}),
    Place(managed=True, queues={"default": "fine", "training": "foreign"}),
    Place(managed=True, queues={"training": "held"}),
    Place(managed=True, queues={"training": "gone", "other": "foreign"}),
    Place(managed=True, queues={}),
    Place(managed=False, queues={"training": "fine"}),
    Place(managed=False, queues={"training": "held", "other": "gone"}),
)
