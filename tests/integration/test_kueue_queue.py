"""Jobs without a queue, with the real Kueue and operator: they get a queue only if Kueue can start them."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane import kueue
from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import gpu_nodes
from tests.support.installation import service
from tests.support.jobs import changed
from tests.support.queued_jobs import (
    ASK,
    PLACES,
    QUEUE_LABEL,
    Job,
    add_queue,
    any_job,
    create,
    managed_namespace,
    pi,
    settle,
    with_kueue,
)
from webhook.api.annotations import SKIP

pytestmark = pytest.mark.timeout(600)
CONFIGURATION = "kueue-mutating-webhook-configuration"
HOOK = "mmpijob.kb.io"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_kueue(tmp_path_factory.mktemp("kueue-queue"), gpu_nodes(8)) as running:
        yield running


@pytest.fixture
def managed(cluster: Cluster) -> Iterator[str]:
    name = managed_namespace(cluster)
    yield name
    cluster.kubectl("delete", "mpijobs", "--all", "-n", name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def test_job_without_a_queue_is_queued_admitted_and_run(cluster: Cluster, managed: str) -> None:
    plain = pi(managed, "plain", runs_on=False)
    stored = cluster.kubectl("create", "-f", "-", "-o", "json", stdin=plain)
    assert '"suspend": true' in stored.stdout
    assert f'"{QUEUE_LABEL}": "training"' in stored.stdout
    assert "Warning: injected: " in stored.stderr
    assert "kueue-queue training" in stored.stderr
    job = Job(cluster, managed, "plain")
    job.wait_for("Succeeded")
    assert job.suspended is False
    done = cluster.wait_for("the workload", job.workload)
    assert done["spec"]["queueName"] == "training"
    assert has_condition(done, "Admitted")


def test_volcano_queue_is_used_as_a_kueue_queue_if_volcano_is_not_installed(cluster: Cluster, managed: str) -> None:
    """Without this service, Kueue starts a job that names a Volcano queue at once, and no quota counts the job."""
    add_queue(cluster, managed, "other", cpu=8)
    settle(cluster, managed, "other")
    named = changed({"spec.runPolicy.schedulingPolicy": {"queue": "other"}}, pi(managed, "named"))
    job, warnings = create(cluster, named)
    assert (job.queue, job.suspended is not None) == ("other", True)
    assert "schedulingPolicy" not in warnings
    job.wait_for("Running")
    cluster.wait_for("the workload", job.workload)

    unknown = changed({"spec.runPolicy.schedulingPolicy": {"queue": "gone"}}, pi(managed, "unknown"))
    job, warnings = create(cluster, unknown)
    assert "not in queue gone: LocalQueue gone doesn't exist. Use other or training." in warnings
    job.wait_for("Running")
    assert job.workload() is None
    cluster.kubectl("delete", "localqueue", "other", "-n", managed)
    dry_run = ("create", "--dry-run=server", "-f", "-")
    output = lambda: cluster.kubectl(*dry_run, stdin=changed({"metadata.name": "third"}, unknown)).stderr  # noqa: E731
    usual = 'kueue-queue: in queue training: there is no queue "gone" (spec.runPolicy.schedulingPolicy.queue)'
    cluster.wait_for("the usual queue", lambda: usual in output() or None)


def test_job_waits_while_the_queue_is_full(cluster: Cluster, managed: str) -> None:
    first, _ = create(cluster, pi(managed, "first", cpu=2))
    first.wait_for("Running")
    second, _ = create(cluster, pi(managed, "second", cpu=2))
    pending = lambda: ((found := second.workload()) and found.get("status", {}).get("conditions")) or None  # noqa: E731
    (condition, *_) = cluster.wait_for("Kueue's verdict", pending)
    assert "insufficient unused quota for cpu" in condition["message"]
    assert (second.queue, second.suspended, second.pods()) == ("training", True, [])
    cluster.kubectl("delete", "mpijob", "first", "-n", managed)
    second.wait_for("Running")
    assert len(second.pods()) == 3


def test_workers_that_fit_on_one_node_share_a_node(cluster: Cluster) -> None:
    """Without the injection `topology`, the scheduler puts each worker on a separate node."""
    namespace = cluster.create_namespace("packed")
    nodes = {}
    for skipped in ("", "topology"):
        job, _ = create(cluster, pi(namespace, f"packed{skipped}", annotations={SKIP: skipped} if skipped else {}))
        job.wait_for("Running")
        workers = [pod for pod in job.pods() if "-worker-" in pod["metadata"]["name"]]
        nodes[skipped] = {pod["spec"]["nodeName"] for pod in workers}
    assert [len(each) for each in nodes.values()] == [1, 2]


SEED = 20261121
JOBS = 16


def test_injected_queue_never_leaves_a_job_suspended(cluster: Cluster) -> None:
    """Random jobs without a queue: every job runs, except jobs that their user suspended."""
    chosen = random.Random(SEED)
    places = {place.build(cluster): place for place in PLACES}
    for namespace, place in places.items():
        if place.usable:
            settle(cluster, namespace, place.usable)
    jobs, suspended, refused = [], set(), 0
    for index in range(JOBS):
        namespace = chosen.choice(list(places))
        manifest = any_job(chosen, namespace, f"mix-{index}")
        made = cluster.kubectl("create", "-f", "-", stdin=manifest, check=False)
        if made.returncode:
            # Kueue puts the job into the default queue, so the job's priority class must exist.
            assert "so Kueue builds no Workload" in made.stderr
            assert "default" in places[namespace].queues
            refused += 1
            continue
        jobs.append(Job(cluster, namespace, f"mix-{index}"))
        if manifest["spec"].get("runPolicy", {}).get("suspend"):
            suspended.add(jobs[-1].name)

    def waiting() -> set[str]:
        found = {each["metadata"]["name"]: each for each in cluster.get("mpijobs", "-A")["items"]}
        return {job.name for job in jobs if not has_condition(found[job.name], "Running")}

    try:
        cluster.wait_for("every job to run", lambda: waiting() <= suspended or None, timeout=240)
    except TimeoutError as error:
        raise AssertionError(f"{waiting() - suspended} do not run") from error
    queues = {job: job.queue for job in jobs}
    assert {queue for queue in queues.values() if queue} == {"training", "default"}
    assert len([job for job, queue in queues.items() if not queue]) > JOBS // 4
    for job, queue in queues.items():
        if queue:
            assert places[job.namespace].queues[queue] == "fine"
            assert not job.suspended
    for namespace in places:
        cluster.kubectl("delete", "mpijobs", "--all", "-n", namespace, "--wait=false")


def test_kueue_can_start_stop_and_requeue_a_job(cluster: Cluster, managed: str) -> None:
    earlier = len(service.decisions(cluster))
    job, _ = create(cluster, pi(managed, "stopped"))
    job.wait_for("Running")
    queue = ("patch", "clusterqueue", f"{managed}-training", "--type=merge", "-p")
    cluster.kubectl(*queue, '{"spec": {"stopPolicy": "HoldAndDrain"}}')
    cluster.wait_for("the job to be stopped", lambda: job.suspended or None)
    cluster.wait_for("the pods to be gone", lambda: not job.pods() or None)
    cluster.kubectl(*queue, '{"spec": {"stopPolicy": "None"}}')
    cluster.wait_for("the job to be started again", lambda: job.suspended is False or None)
    cluster.wait_for("its pods", lambda: len(job.pods()) == 3 or None)

    account = f"system:serviceaccount:{kueue.NAMESPACE}:{kueue.ACCOUNT}"
    mine = [each for each in service.decisions(cluster)[earlier:] if each["name"] == "stopped"]
    updates = [each for each in mine if each["operation"] == "UPDATE" and each["user"] == account]
    assert {each["webhook"] for each in updates} == {"mutate", "validate"}
    assert len(updates) >= 6, "start, stop, start"
    assert all(each["allowed"] and not each["injected"] for each in updates)
    assert {each["skipped"] for each in updates} == {"an update by a controller"}


def replace(cluster: Cluster, manifest: dict[str, Any], queue: str | None) -> str:
    """Replace the job by the file with this queue in the annotation. Returns kubectl's warnings."""
    new = copy.deepcopy(manifest)
    new["metadata"]["annotations"] = {} if queue is None else {ASK: queue}
    return cluster.kubectl("replace", "-f", "-", stdin=new).stderr


def test_file_with_a_different_queue_moves_a_waiting_job(cluster: Cluster, managed: str) -> None:
    add_queue(cluster, managed, "second", cpu=8)
    settle(cluster, managed, "second")
    manifest = pi(managed, "moves", cpu=4, annotations={ASK: "training"})
    job, _ = create(cluster, manifest)
    cluster.wait_for("the workload", job.workload)
    warnings = replace(cluster, manifest, "nowhere")
    assert "stays in queue training: LocalQueue nowhere doesn't exist. Use second or training." in warnings
    assert replace(cluster, manifest, None) == "", "without the annotation the job stays in its queue"
    assert (job.queue, job.suspended) == ("training", True)

    assert "Warning: injected: kueue-queue second" in replace(cluster, manifest, "second")
    assert (job.queue, job.suspended) == ("second", True)
    moved = lambda: ((found := job.workload()) and found["spec"]["queueName"] == "second") or None  # noqa: E731
    cluster.wait_for("Kueue to move it", moved)
    assert replace(cluster, manifest, "second") == ""
    assert job.pods() == []
    warnings = replace(cluster, manifest, "")
    assert "stays in queue second: a waiting job needs a queue. Delete the job and submit it again." in warnings
    assert (job.queue, job.suspended) == ("second", True)
    # A user cannot take the job out of the queue and start it: the label stays, and Kueue suspends the job again.
    metadata = {"annotations": {SKIP: "kueue-queue"}, "labels": {QUEUE_LABEL: None}}
    job.patch(json.dumps({"metadata": metadata, "spec": {"runPolicy": {"suspend": False}}}))
    assert job.queue == "second"
    cluster.wait_for("Kueue to suspend it again", lambda: job.suspended or None)


def test_file_with_a_different_queue_does_not_move_a_running_job(cluster: Cluster, managed: str) -> None:
    add_queue(cluster, managed, "second", cpu=8)
    settle(cluster, managed, "second")
    manifest = pi(managed, "stays", annotations={ASK: "training"})
    job, _ = create(cluster, manifest)
    job.wait_for("Running")
    pods = {pod["metadata"]["uid"] for pod in job.pods()}
    for queue in ("second", "", "nowhere"):
        warnings = replace(cluster, manifest, queue)
        stays = f'stays in queue training, not "{queue}": to move a running job, delete it and submit it again'
        assert stays in warnings
    assert replace(cluster, manifest, None) == ""
    assert (job.queue, job.suspended) == ("training", False)
    assert {pod["metadata"]["uid"] for pod in job.pods()} == pods

    # Kueue does not let a user move a running job.
    label = cluster.kubectl("label", "mpijob", job.name, "-n", managed, "--overwrite", f"{QUEUE_LABEL}=x", check=False)
    assert "field is immutable" in label.stderr


@pytest.fixture(params=["kueue-mutating-webhook-configuration", "a-kueue"])
def order(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[str]:
    """In the first run, Kueue's hook for MPIJobs is called after the service's hook; in the second run before it."""
    found = cluster.get("mutatingwebhookconfiguration", CONFIGURATION)
    if request.param == CONFIGURATION:
        yield request.param
        return
    moved = copy.deepcopy(found)
    moved["metadata"] = {"name": request.param}
    moved["webhooks"] = [hook for hook in found["webhooks"] if hook["name"] == HOOK]
    rest = {"webhooks": [hook for hook in found["webhooks"] if hook["name"] != HOOK]}
    cluster.kubectl("create", "-f", "-", stdin=moved)
    cluster.kubectl("replace", "-f", "-", stdin=strip(found) | rest)
    yield request.param
    cluster.kubectl("delete", "mutatingwebhookconfiguration", request.param)
    cluster.kubectl("replace", "-f", "-", stdin=strip(found))


def strip(found: dict[str, Any]) -> dict[str, Any]:
    """The object without its resource version."""
    metadata = {key: value for key, value in found["metadata"].items() if key != "resourceVersion"}
    return {**found, "metadata": metadata}


def test_order_of_the_hooks_makes_no_difference(cluster: Cluster, managed: str, order: str) -> None:
    """Kueue changes the template of a job with `runLauncherAsWorker`, so the service's hook is called again."""
    manifest = changed({"spec.runLauncherAsWorker": True}, pi(managed, f"in-{order[:7]}"))
    job, warnings = create(cluster, manifest)
    assert warnings.count("kueue-queue training") == 1
    worker = job.get()["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"]
    assert worker["kueue.x-k8s.io/pod-index-offset"] == "1"
    assert job.queue == "training"
    job.wait_for("Running")
    assert job.suspended is False
