"""The service predicts which jobs Kueue can never admit. The tests compare the predictions with the real Kueue.

Kueue's controllers create a Workload for each generated MPIJob, and decide whether to admit it. Nothing else runs in
the tree of cohorts. The service sees the same objects. MPIJOB_KUEUE_JOBS sets how many jobs are tried in each tree.
"""

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import pytest

from tests.controlplane import kueue
from tests.controlplane.cluster import Cluster, has_condition
from tests.support import kueue_objects
from tests.support.api_client import client
from tests.support.jobs import changed
from tests.support.rare import rare
from tests.support.rule_checks import defaulted
from tests.support.worlds import kueue_worlds as worlds
from tests.support.worlds.kueue_verdicts import Verdict, Workloads
from tests.support.worlds.kueue_worlds import Manifest
from webhook.api.kueue import API_VERSIONS, QUEUE_NAME
from webhook.cluster.resources.cluster_queues import CLUSTER_QUEUES
from webhook.cluster.resources.cohorts import COHORTS
from webhook.cluster.resources.local_queues import LOCAL_QUEUES
from webhook.cluster.resources.resource_flavors import RESOURCE_FLAVORS
from webhook.cluster.resources.topologies import TOPOLOGIES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView
from webhook.kit.context import Context
from webhook.predict.kueue.managed import manages
from webhook.rules import REGISTRY, Violation

pytestmark = [rare, pytest.mark.cluster, pytest.mark.timeout(600)]

TREES = 18
JOBS = int(os.environ.get("MPIJOB_KUEUE_JOBS", "4"))
KINDS = ("clusterqueues", "localqueues", "cohorts", "resourceflavors", "topologies")


# Settings as in an installation, except that Kueue's requests are hardly limited.
SETTINGS = {
    "clientConnection": {"qps": 1000, "burst": 1000},
    "managedJobsNamespaceSelector": {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", kueue.NAMESPACE]},
            {"key": "kueue", "operator": "NotIn", "values": ["no"]},
        ]
    },
    "resources": {"excludeResourcePrefixes": [worlds.EXCLUDED]},
}
FIXES = (
    (re.compile(r"Use (\d+) workers?\."), lambda workers: {"Worker.replicas": int(workers)}),
    (re.compile(r"Tolerate (\S+)\."), lambda key: {"ROLE.tolerations": [{"key": key, "operator": "Exists"}]}),
)


class Case(NamedTuple):
    job: Manifest
    ours: list[Violation]
    theirs: Verdict
    topologies: bool


@pytest.fixture(scope="module")
def trees(cluster: Cluster) -> list[list[str]]:
    """The namespaces of each tree of cohorts. Each namespace has a LocalQueue `queue` for one ClusterQueue."""
    cluster.start_kueue(settings=SETTINGS)
    cluster.apply(worlds.nodes())
    cluster.kubectl("taint", "nodes", "--all", "node.kubernetes.io/not-ready:NoSchedule-")
    cluster.apply(worlds.shared())
    rng = Random(7)
    made = [worlds.tree(rng, index) for index in range(TREES)]
    names = [name for _, queues in made for name in queues]
    cluster.apply([manifest for manifests, _ in made for manifest in manifests])
    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names])
    cluster.apply([kueue_objects.local_queue("queue", name, namespace=name) for name in names])

    active = lambda: all(has_condition(queue, "Active") for queue in cluster.get("localqueues", "-A")["items"])  # noqa: E731
    cluster.wait_for("the queues to be active", active, timeout=60)
    return [queues for _, queues in made]


def snapshot(cluster: Cluster, version: str) -> Snapshot:
    """All objects that the rules need. Kueue's objects are read in the API version `version`."""
    group, _, number = version.partition("/")
    objects = [item for kind in KINDS for item in cluster.get(f"{kind}.{number}.{group}", "-A")["items"]]
    objects += cluster.get("namespaces")["items"]
    objects.append(cluster.get("configmap", kueue.CONFIG_MAP, "-n", kueue.NAMESPACE))
    return Snapshot(objects)


@pytest.fixture(scope="module")
def view(cluster: Cluster, trees: list[list[str]]) -> Snapshot:
    return snapshot(cluster, API_VERSIONS[0])


def findings(job: Manifest, view: ClusterView, rule_id: str = "ever-fits") -> list[Violation]:
    rule = REGISTRY[rule_id]
    context = Context(namespace=job["metadata"]["namespace"], document=json.dumps(job).encode(), view=view)
    return list(rule.check(defaulted(job), rule.settings(), context))


def fixed(case: Case) -> Manifest | None:
    """The job with the suggested fix. None if there are several violations, or none, or if FIXES lacks the fix."""
    if len(case.ours) != 1:
        return None
    (violation,) = case.ours
    role = "Launcher" if "[Launcher]" in violation.path else "Worker"
    for pattern, change in FIXES:
        if match := pattern.fullmatch(violation.fix):
            changes = {path.replace("ROLE", f"{role}.template.spec"): value for path, value in change(match[1]).items()}
            changes["metadata.name"] = f"{case.job['metadata']['name']}-fixed"
            return changed(changes, case.job)
    return None


@pytest.fixture(scope="module")
def cases(cluster: Cluster, view: Snapshot, trees: list[list[str]]) -> list[Case]:
    """The service's and Kueue's verdicts on random jobs. If the service suggests a fix, the fixed job is tried too.

    The jobs in a tree are tried one after the other.
    """
    done: list[Case] = []

    async def walk(workloads: Workloads, index: int, names: list[str]) -> None:
        rng = Random(index)

        async def decided(job: Manifest, *, topologies: bool) -> Case:
            done.append(Case(job, findings(job, view), await workloads.decide(job), topologies))
            return done[-1]

        for number in range(JOBS):
            name = rng.choice(names)
            topologies = worlds.has_topologies(view, name)
            case = await decided(worlds.job(rng, f"job-{number}", name, topologies=topologies), topologies=topologies)
            if job := fixed(case):
                await decided(job, topologies=topologies)

    async def run() -> None:
        async with client(cluster) as api:
            reading = asyncio.create_task((workloads := Workloads(api)).run())
            await asyncio.gather(*(walk(workloads, index, names) for index, names in enumerate(trees)))
            reading.cancel()

    asyncio.run(run())
    return done


def test_job_that_never_fits_is_never_admitted(cases: list[Case]) -> None:
    assert not [case for case in cases if case.ours and case.theirs.admitted]
    counts = Counter((case.theirs.admitted, bool(case.ours)) for case in cases)
    assert min(counts[True, False], counts[False, True]) > len(cases) / 4, counts


def test_nearly_all_jobs_that_are_never_admitted_are_reported(cases: list[Case]) -> None:
    """With topology-aware scheduling, Kueue also looks for nodes, but the service does not.

    Without topology-aware scheduling, the service misses a few jobs: Kueue gives the launcher a flavor and keeps it,
    even if no flavor is left for the workers. This depends on the order of events, so the service reports nothing.
    """
    refused = [case for case in cases if not case.theirs.admitted]
    missed = [case for case in refused if not case.ours]
    assert len([case for case in missed if not case.topologies]) <= max(2, len(refused) / 50)
    assert len(missed) < len(refused) / 10


def test_job_with_the_suggested_fix_is_admitted(cases: list[Case]) -> None:
    """With the suggested toleration, a job may still exceed the quota. The service then reports ExceedsMaxQuota."""
    advised = [case for case in cases if case.job["metadata"]["name"].endswith("-fixed")]
    assert len(advised) > len(cases) / 40
    assert {violation.message.partition(":")[0] for case in advised for violation in case.ours} <= {"ExceedsMaxQuota"}
    assert [case for case in advised if not (case.theirs.admitted or case.ours or case.topologies)] == []


def test_both_api_versions_of_kueue_give_the_same_objects(cluster: Cluster, view: Snapshot) -> None:
    older = snapshot(cluster, API_VERSIONS[1])
    for resource in (CLUSTER_QUEUES, LOCAL_QUEUES, COHORTS, RESOURCE_FLAVORS, TOPOLOGIES):
        assert older.all(resource) == view.all(resource)


@dataclass(frozen=True)
class Queue:
    """A LocalQueue `queue` in its own namespace.

    `ours` is a part of the message of the rule `local-queue` about a job in this queue. `theirs` is a part of Kueue's
    message.
    """

    id: str
    ours: str
    theirs: str = ""  # in the Workload; empty if Kueue creates no Workload
    labels: dict[str, str] = field(default_factory=dict)
    local: Manifest | None = field(default_factory=dict)
    behind: Manifest | None = field(default_factory=dict)

    @property
    def objects(self) -> Iterator[Manifest]:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.id, "labels": self.labels}}
        if self.behind is not None:
            made = kueue_objects.cluster_queue(self.id, {"plain": {"cpu": 1000, "memory": "1Ti"}}, **self.behind)
            yield {**made, "spec": {key: value for key, value in made["spec"].items() if value is not None}}
        if self.local is not None:
            yield kueue_objects.local_queue("queue", self.id, namespace=self.id, **self.local)


WRONG_NAMESPACE = "Workload namespace doesn't match ClusterQueue selector"
QUEUES = [
    Queue("good", "", "Quota reserved in ClusterQueue good"),
    Queue("unmanaged", "Kueue does not manage this namespace", labels={"kueue": "no"}),
    Queue("no-local", "LocalQueue queue doesn't exist", "LocalQueue queue doesn't exist", local=None),
    Queue("held", "LocalQueue queue is stopped", "LocalQueue queue is inactive", local={"stopPolicy": "Hold"}),
    Queue("no-behind", *["ClusterQueue no-behind doesn't exist"] * 2, behind=None),
    Queue(
        "drained",
        "ClusterQueue drained is stopped",
        "ClusterQueue drained is inactive",
        behind={"stopPolicy": "HoldAndDrain"},
    ),
    Queue(
        "broken",
        "ClusterQueue broken is inactive (AdmissionCheckNotFound)",
        "ClusterQueue broken is inactive",
        behind={"admissionChecksStrategy": {"admissionChecks": [{"name": "gone"}]}},
    ),
    *(
        Queue(
            name,
            f"namespace doesn't match its selector (ClusterQueue {name})",
            WRONG_NAMESPACE,
            behind={"namespaceSelector": selector},
        )
        for name, selector in (("others-only", {"matchLabels": {"team": "other"}}), ("nobody", None))
    ),
]


@pytest.fixture(scope="module")
def queues(cluster: Cluster, trees: list[list[str]]) -> Snapshot:
    """A cluster with QUEUES and a job `job` in each queue. Every ClusterQueue has conditions before the jobs exist."""
    cluster.apply([manifest for queue in QUEUES for manifest in queue.objects])
    settled = lambda: {  # noqa: E731
        item["metadata"]["name"]: item["status"]["conditions"]
        for item in cluster.get("clusterqueues")["items"]
        if item.get("status", {}).get("conditions")
    }
    cluster.wait_for(
        "ClusterQueues", lambda: settled().keys() >= {q.id for q in QUEUES if q.behind is not None} or None
    )
    cluster.apply([queue_job(queue.id) for queue in QUEUES])
    return snapshot(cluster, API_VERSIONS[0])


def queue_job(namespace: str) -> Manifest:
    return changed(
        {
            "metadata": {"name": "job", "namespace": namespace, "labels": {QUEUE_NAME: "queue"}},
            "Worker.template.spec.containers.0.resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
        }
    )


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.id)
def test_job_starts_only_in_the_good_queue(cluster: Cluster, queues: Snapshot, queue: Queue) -> None:
    if queue.theirs:
        where = ("workloads", "-n", queue.id)
        cluster.wait_for("Kueue's verdict", lambda: queue.theirs in json.dumps(cluster.get(*where)) or None)
    job = cluster.get("mpijob", "job", "-n", queue.id)
    admitted = not job["spec"]["runPolicy"]["suspend"]
    ours = findings(job, queues, "local-queue")
    assert [violation.message for violation in ours if queue.ours not in violation.message] == []
    assert (queue.id == "good") == (not ours) == admitted


def test_unmanaged_namespace_has_no_workload(cluster: Cluster, queues: Snapshot) -> None:
    cluster.wait_for(
        "the good job", lambda: not cluster.get("mpijob", "job", "-n", "good")["spec"]["runPolicy"]["suspend"]
    )
    assert cluster.get("workloads", "-n", "unmanaged")["items"] == []
    assert manages(queues, "unmanaged") is False
    assert manages(queues, "good") is True
