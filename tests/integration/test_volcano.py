"""The service agrees with the operator's PodGroups for Volcano and coscheduling, and with Volcano's admission.

Volcano's scheduler does not run.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support import volcano
from tests.support.installation import service
from tests.support.jobs import changed
from tests.support.paths import MANIFESTS
from tests.support.policies import quick_keys
from tests.support.rare import rare
from tests.support.rule_checks import defaulted, run
from tests.support.volcano_objects import Json, queue
from webhook.api import pod_resources
from webhook.api.mpijob import VOLCANO_QUEUE
from webhook.api.yaml import load_all
from webhook.cluster.snapshot import Snapshot
from webhook.kit.context import Context
from webhook.predict.volcano import min_resources

pytestmark = [pytest.mark.timeout(600), pytest.mark.built(volcano.RECIPE)]

POLICIES = "mpijob-webhook"
QUEUES = f"queues.{volcano.GROUP}"
GPU = "nvidia.com/gpu"
POLICY = "spec.runPolicy.schedulingPolicy"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster with an operator for Volcano, Volcano's CRDs and admission, and this service."""
    with Cluster(log_dir=tmp_path_factory.mktemp("volcano")) as running:
        volcano.install_crds(running)
        for case in CASES:
            if case.queue is not None:
                volcano.add_queue(running, case.queue)
        volcano.add_queue(running, queue("last"))
        volcano.start_admission(running)
        running.wait_for("Volcano's admission to see all queues", lambda: volcano.admits(running, "last") is None)
        running.apply(
            [{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}]
        )
        running.start_operator("-gang-scheduling=volcano")
        running.kubectl("create", "namespace", POLICIES)
        (policy,) = load_all((MANIFESTS / "policies" / "volcano.yaml").read_text())
        running.apply([{**policy, "metadata": {**policy["metadata"], "namespace": POLICIES}}])
        with service.running(running, *quick_keys(running.dir)):
            yield running


@dataclass(frozen=True, kw_only=True)
class Case:
    """A queue, the message of Volcano's admission about it (`theirs`), and the message of the service (`ours`).

    If `waits` is set, the service only warns, because the job may start later.
    """

    id: str
    queue: Json | None
    theirs: str = ""
    ours: str = ""
    waits: bool = False

    @property
    def name(self) -> str:
        return self.id if self.queue is None else str(self.queue["metadata"]["name"])


CASES = [
    Case(id="default", queue=queue("default", parent="root")),
    Case(id="root", queue=queue("root"), ours="has queues below it", waits=True),
    Case(id="open", queue=queue("open", {GPU: 8, "cpu": 100}, parent="root")),
    Case(id="nothing-bounded", queue=queue("nothing-bounded", {"cpu": 0, "memory": 0})),
    Case(
        id="closed",
        queue=queue("closed", state="Closed"),
        theirs="can only submit PodGroup to queue with state `Open`, queue `closed` status is `Closed`",
        ours='queue "closed" is Closed',
    ),
    Case(id="closing", queue=queue("closing", state="Closing"), theirs="status is `Closing`", ours="is Closing"),
    Case(id="new", queue=queue("new", state=""), theirs="status is ``", ours="is not open yet", waits=True),
    Case(
        id="unknown",
        queue=queue("unknown", state="Unknown"),
        theirs="status is `Unknown`",
        ours="not open yet",
        waits=True,
    ),
    Case(id="gone", queue=None, theirs="unable to find queue", ours="does not exist"),
    Case(id="No_Name", queue=None, theirs="spec.queue in body should match", ours='contains "N"'),
    Case(id="x" * 254, queue=None, theirs="spec.queue: Too long", ours="has 254 characters"),
    Case(id="parent", queue=queue("parent", parent="root"), ours="has queues below it", waits=True),
    Case(id="child", queue=queue("child", parent="parent")),
    # Volcano's scheduler checks the size of a queue. Volcano's admission does not.
    Case(id="small", queue=queue("small", {GPU: 7}), ours="can hold 7"),
    Case(id="full", queue=queue("full", {GPU: 8}, allocated={GPU: 1}), ours="has 7 free", waits=True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id[:20])
def test_service_and_volcanos_admission_have_the_expected_messages_about_a_queue(cluster: Cluster, case: Case) -> None:
    refused = volcano.admits(cluster, case.name) or ""
    assert (case.theirs in refused) if case.theirs else not refused
    view = Snapshot(cluster.get(QUEUES)["items"])
    found = run("volcano-queue", changed({POLICY: {"queue": case.name}}), {"gangScheduling": True}, view=view)
    assert len(found) == bool(case.ours)
    assert all(case.ours in violation.message for violation in found)
    assert all(violation.advisory == case.waits for violation in found)


def create(cluster: Cluster, namespace: str, changes: Json) -> dict[str, Any]:
    """Create a job that the service admits. Returns the stored job."""
    job = changed({**changes, "metadata.namespace": namespace})
    made: dict[str, Any] = json.loads(cluster.kubectl("create", "-f", "-", "-o", "json", stdin=job).stdout)
    return made


def pod_group(cluster: Cluster, namespace: str, group: str = volcano.GROUP) -> Any:
    """The PodGroup of the job `train`, once the operator has created it."""
    where = (f"podgroup.{group}", "train", "-n", namespace)
    return cluster.wait_for("the PodGroup", lambda: cluster.get(*where), timeout=60)


CHANGES = [
    {},
    {
        "Worker.template.spec.containers.0.resources": {
            "requests": {"cpu": "500m", "memory": "1Gi"},
            "limits": {"cpu": 2},
        }
    },
    {
        "Worker.template.spec.initContainers": [
            {"name": "init", "image": "init", "resources": {"requests": {"cpu": "90", "memory": "90Gi"}}}
        ]
    },
    {POLICY: {"minResources": {"cpu": "3", "memory": "1500M"}}},
    {POLICY: {"minAvailable": 0}},
    {POLICY: {"minAvailable": 3}, "Worker.template.spec.priorityClassName": "high"},
]


@pytest.mark.parametrize("changes", CHANGES, ids=range(len(CHANGES)))
def test_pod_group_requests_the_computed_resources(cluster: Cluster, namespace: str, changes: Json) -> None:
    made = create(cluster, namespace, changes)
    group = pod_group(cluster, namespace)["spec"]
    view = Snapshot(cluster.get("priorityclasses")["items"])
    ours = min_resources(defaulted(made), Context(namespace=namespace, view=view))
    assert pod_resources.parse_amounts(group.get("minResources")) == ours
    assert bool(ours) == (changes != {POLICY: {"minAvailable": 0}})
    worker = ("pod", "train-worker-0", "-n", namespace)
    pod = cluster.wait_for("a worker", lambda: cluster.get(*worker), timeout=60)
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "train"


def annotate(cluster: Cluster, namespace: str, name: str) -> None:
    """Annotate the namespace with a queue, and wait until the service has seen the annotation."""
    cluster.kubectl("annotate", "namespace", namespace, f"{VOLCANO_QUEUE}={name}")
    probe = ("create", "--dry-run=server", "-f", "-", "-o", f"jsonpath={{.{POLICY}.queue}}")
    job = changed({"metadata.namespace": namespace})
    cluster.wait_for("the service to see the queue", lambda: cluster.kubectl(*probe, stdin=job).stdout == name or None)


def test_job_stays_in_the_queue_of_its_namespace(cluster: Cluster, namespace: str) -> None:
    annotate(cluster, namespace, "open")
    made = create(cluster, namespace, {})
    assert made["spec"]["runPolicy"]["schedulingPolicy"] == {"queue": "open"}
    assert pod_group(cluster, namespace)["spec"]["queue"] == "open"
    pods = ("pods", "-n", namespace, "-l", "training.kubeflow.org/job-name=train")
    cluster.wait_for("launcher and workers", lambda: len(cluster.get(*pods)["items"]) == 5 or None, timeout=60)
    after = pod_group(cluster, namespace)
    assert (after["spec"]["queue"], after["metadata"]["generation"]) == ("open", 1)


def test_without_the_injection_the_operator_moves_the_job_to_the_default_queue(
    cluster: Cluster, namespace: str
) -> None:
    annotate(cluster, namespace, "open")
    create(cluster, namespace, {"metadata.annotations": {"training.openshift.io/skip": "volcano-queue"}})
    moved = lambda: pod_group(cluster, namespace)["spec"]["queue"] == "default" or None  # noqa: E731
    cluster.wait_for("the operator to move the job", moved, timeout=60)
    assert pod_group(cluster, namespace)["metadata"]["generation"] > 1


SCHEDULER = "scheduler-plugins-scheduler"


@pytest.fixture(scope="module")
def coscheduling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with an operator that creates PodGroups for the coscheduling plugin."""
    with Cluster(log_dir=tmp_path_factory.mktemp("coscheduling")) as running:
        volcano.install_crds(running)
        running.start_operator(f"-gang-scheduling={SCHEDULER}")
        yield running


@rare
def test_pod_group_for_coscheduling_has_the_computed_values(coscheduling: Cluster) -> None:
    namespace = coscheduling.create_namespace()
    label = "scheduling.x-k8s.io/pod-group"
    changes = {"Worker.template.metadata": {"labels": {label: "mine"}}, "Worker.template.spec.schedulerName": "mine"}
    job = changed(changes)
    reported = run("gang", job, {"scheduler": SCHEDULER})
    assert [violation.message for violation in reported] == ["the operator replaces it"] * 2
    made = create(coscheduling, namespace, changes)
    group = pod_group(coscheduling, namespace, "scheduling.x-k8s.io")["spec"]
    assert group["minMember"] == 5
    ours = min_resources(defaulted(made), Context(namespace=namespace))
    assert pod_resources.parse_amounts(group["minResources"]) == ours
    worker = ("pod", "train-worker-0", "-n", namespace)
    pod = coscheduling.wait_for("a worker", lambda: coscheduling.get(*worker), timeout=60)
    assert pod["spec"]["schedulerName"] == SCHEDULER
    assert pod["metadata"]["labels"][label] == "train"
