"""The real API server, operator, scheduler and Kueue place pods on simulated nodes."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import gpu_nodes
from tests.support import kueue_objects
from tests.support.installation import service
from tests.support.placement import GPU, RACK, delete_jobs, hosts, job, nodes, worker_pods
from tests.support.policies import quick_keys
from tests.support.rare import rare
from webhook.api.annotations import SKIP
from webhook.cli.main import main

pytestmark = [rare, pytest.mark.timeout(600)]
XE = "gpu.intel.com/xe"
HOSTNAME = "kubernetes.io/hostname"
# Fields of a node's status that the API server requires.
INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeProxyVersion",
    "operatingSystem", "architecture",
)  # fmt: skip
QUEUE = "kueue.x-k8s.io/queue-name"
ROLES = "spec.mpiReplicaSpecs"
LEVEL, GROUP, ANYWHERE = (
    f"kueue.x-k8s.io/podset-{kind}" for kind in ("preferred-topology", "group-name", "unconstrained-topology")
)


def devices(resource: str, count: int, prefix: str) -> list[dict[str, Any]]:
    """Nodes with eight devices each and without the vendor's labels."""
    found = gpu_nodes(count, gpus=0, racks=1, prefix=prefix)
    for node in found:
        node["status"]["capacity"][resource] = node["status"]["allocatable"][resource] = "8"
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster with Kueue."""
    with Cluster(log_dir=tmp_path_factory.mktemp("topology")) as running:
        running.start_scheduler()
        with_version = nodes(6)
        for node in with_version:
            node["status"]["nodeInfo"] = dict.fromkeys(INFO, "") | {"kubeletVersion": "v1.35.4"}
        running.start_kwok(with_version)
        running.start_operator()
        running.start_kueue()
        with service.running(running, *quick_keys(running.dir)):
            yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    name = cluster.create_namespace()
    yield name
    delete_jobs(cluster, name)


def racks(cluster: Cluster, found: list[str]) -> Counter[str]:
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in cluster.get("nodes")["items"]}
    return Counter(labels[host][RACK] for host in found)


def create(cluster: Cluster, namespace: str, manifest: dict[str, Any]) -> str:
    """Create the job. Returns its name."""
    created = cluster.kubectl("create", "-n", namespace, "-o", "name", "-f", "-", stdin=manifest)
    return created.stdout.strip().rpartition("/")[2]


def preferred(pod: dict[str, Any]) -> list[dict[str, Any]]:
    terms: list[dict[str, Any]] = pod["spec"]["affinity"]["podAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    return terms


class TestScheduler:
    """The scheduler places the workers of a job. A rack has ten nodes."""

    def test_workers_share_a_rack_with_enough_nodes(self, cluster: Cluster, namespace: str) -> None:
        name = create(cluster, namespace, job("small", 8))
        assert len(racks(cluster, hosts(cluster, namespace, name, 8))) == 1

    def test_workers_of_a_job_with_a_generated_name_share_a_rack(self, cluster: Cluster, namespace: str) -> None:
        """The API server accepts matchLabelKeys, the operator copies them to the pods, and the scheduler obeys them."""
        names = [create(cluster, namespace, job("unnamed-", 6)) for _ in range(2)]
        for name in names:
            assert len(racks(cluster, hosts(cluster, namespace, name, 6))) == 1
            for pod in worker_pods(cluster, namespace, name):
                assert {item["podAffinityTerm"]["topologyKey"]: item["weight"] for item in preferred(pod)} == {
                    RACK: 100,
                    "topology.kubernetes.io/zone": 25,
                }
                for term in (item["podAffinityTerm"] for item in preferred(pod)):
                    assert term["matchLabelKeys"] == ["training.kubeflow.org/job-name"]
                    # The API server adds the selector for matchLabelKeys.
                    (wanted,) = term["labelSelector"]["matchExpressions"]
                    assert (wanted["key"], wanted["values"]) == ("training.kubeflow.org/job-name", [name])

    def test_launcher_that_is_a_worker_shares_the_rack(self, cluster: Cluster, namespace: str) -> None:
        manifest = job("both", 4, runLauncherAsWorker=True)
        roles = manifest["spec"]["mpiReplicaSpecs"]
        roles["Launcher"]["template"]["spec"] = roles["Worker"]["template"]["spec"]
        name = create(cluster, namespace, manifest)
        hosts(cluster, namespace, name, 4)

        def hosts_of_all() -> list[str] | None:
            pods = cluster.get("pods", "-n", namespace)["items"]
            found = [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]
            return found if len(found) == 5 else None

        assert len(racks(cluster, cluster.wait_for("launcher and workers to be bound", hosts_of_all))) == 1


class TestGpuNodes:
    """New nodes of an autoscaler."""

    def test_workers_run_on_new_nodes_without_labels(self, cluster: Cluster, namespace: str) -> None:
        """A new node of an autoscaler has no labels of the vendor yet."""
        name = create(cluster, namespace, job("waiting", 2, resource=XE))
        cluster.wait_for("the workers", lambda: len(worker_pods(cluster, namespace, name)) == 2 or None)
        cluster.apply(devices(XE, 2, "fresh"))
        assert sorted(hosts(cluster, namespace, name, 2)) == ["fresh-0", "fresh-1"]


class TestKueue:
    """Queues whose flavors have a topology."""

    @pytest.fixture
    def queue(self, cluster: Cluster, namespace: str, request: pytest.FixtureRequest) -> str:
        """The name of a LocalQueue whose GPU flavor has a topology.

        With the parameter "gpus", the quota covers only GPUs, otherwise also CPUs. With "mixed", CPUs have a separate
        flavor without a topology.
        """
        quotas = {f"{namespace}-tas": {GPU: 2000} if request.param == "gpus" else {"cpu": 1000, GPU: 2000}}
        flavors = [kueue_objects.flavor(f"{namespace}-tas", {"nvidia.com/gpu.present": "true"})]
        flavors[0]["spec"]["topologyName"] = "racks"
        if request.param == "mixed":
            quotas = {f"{namespace}-cpu": {"cpu": 1000, GPU: 0}, **quotas}
            flavors.append(kueue_objects.flavor(f"{namespace}-cpu"))
        cluster.apply(
            [
                kueue_objects.topology("racks", RACK, HOSTNAME),
                *flavors,
                kueue_objects.cluster_queue(namespace, quotas),
                kueue_objects.local_queue("training", namespace, namespace=namespace),
            ]
        )
        there = ("localqueue", "training", "-n", namespace)
        cluster.wait_for("the queue to be active", lambda: has_condition(cluster.get(*there), "Active") or None)
        return "training"

    def annotations(self, stored: dict[str, Any], role: str) -> dict[str, str]:
        found = stored["spec"]["mpiReplicaSpecs"][role]["template"]["metadata"].get("annotations", {})
        return {key: value for key, value in found.items() if key in {LEVEL, GROUP, ANYWHERE}}

    @pytest.mark.parametrize("queue", ["topologies", "mixed"], indirect=True)
    @pytest.mark.parametrize("together", [False, True], ids=["launcher", "launcher-as-worker"])
    def test_job_is_admitted_into_one_rack(self, cluster: Cluster, namespace: str, queue: str, together: bool) -> None:
        manifest = job("queued", 6, runLauncherAsWorker=together)
        manifest["metadata"]["labels"] = {QUEUE: queue}
        roles = manifest["spec"]["mpiReplicaSpecs"]
        cpu = {"resources": {"limits": {"cpu": "1"}}}
        roles["Launcher"]["template"]["spec"]["containers"][0] |= cpu
        roles["Worker"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1"
        if together:
            roles["Launcher"]["template"]["spec"] = roles["Worker"]["template"]["spec"]

        def create(*flags: str) -> dict[str, Any]:
            sent = cluster.kubectl("create", *flags, "-n", namespace, "-o", "json", "-f", "-", stdin=manifest)
            stored: dict[str, Any] = json.loads(sent.stdout)
            return stored

        cluster.wait_for("the service to see the queue", lambda: LEVEL in str(create("--dry-run=server")) or None)
        # The test checks the response to the creation, because Kueue later adds the chosen nodes to the job.
        stored = create()
        wanted = {LEVEL: RACK} | ({GROUP: "workers"} if together else {})
        assert self.annotations(stored, "Worker") == wanted
        assert self.annotations(stored, "Launcher") == (wanted if together else {})
        assert "podAffinity" not in stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"].get("affinity", {})
        assert len(racks(cluster, hosts(cluster, namespace, "queued", 6))) == 1

    @pytest.mark.parametrize("queue", ["gpus", "topologies"], indirect=True)
    def test_launcher_without_requests_starts_with_injected_requests(
        self, cluster: Cluster, namespace: str, queue: str, request: pytest.FixtureRequest
    ) -> None:
        """Kueue does not admit a job whose launcher requests nothing. A request for zero GPUs is enough."""
        manifest = job("plain", 2)
        manifest["metadata"] |= {"labels": {QUEUE: queue}, "annotations": {SKIP: "launcher-resources"}}
        tried = ("create", "--dry-run=server", "-n", namespace, "-f", "-")
        warning = f"{ROLES}[Launcher]: NoMatchingFlavor: no TAS flavor assigned. Request "
        warned = lambda: warning in cluster.kubectl(*tried, stdin=manifest).stderr or None  # noqa: E731
        cluster.wait_for("the service to see the queue", warned)
        create(cluster, namespace, manifest)

        def condition() -> dict[str, Any] | None:
            for found in cluster.get("workloads", "-n", namespace)["items"]:
                for each in found.get("status", {}).get("conditions", ()):
                    if each["type"] == "QuotaReserved":
                        return each
            return None

        pending = cluster.wait_for("Kueue's verdict", condition)
        assert (pending["status"], "no TAS flavor assigned" in pending["message"]) == ("False", True), pending
        found = CliRunner().invoke(main, ["why", f"{namespace}/plain", "--kubeconfig", str(cluster.kubeconfig)])
        assert 'queue "training" could never admit it: the launcher pods request nothing' in found.stdout

        manifest["metadata"] |= {"name": "given", "annotations": {}}
        create(cluster, namespace, manifest)
        stored = cluster.get("mpijob", "given", "-n", namespace)
        resources = stored["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["resources"]
        gpus = "topologies" not in request.node.callspec.id
        assert resources == ({"limits": {GPU: "0"}, "requests": {GPU: "0"}} if gpus else {"requests": {"cpu": "100m"}})
        hosts(cluster, namespace, "given", 2)
        running = lambda: has_condition(cluster.get("mpijob", "given", "-n", namespace), "Running") or None  # noqa: E731
        cluster.wait_for("launcher and workers to run", running)
