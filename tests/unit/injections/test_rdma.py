"""The injection `rdma` gives devices, networks and variables to the pods that compute.

If nothing is injected, a note gives the reason.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from tests.support import openshift
from tests.support.injecting import PATHS, Example, inject, mpijob
from tests.support.kueue_objects import cluster_queue, config, flavor, local_queue, namespace
from tests.support.networks import network
from tests.support.nodes import node
from tests.support.quota_objects import quota
from webhook.api.networks import NETWORKS
from webhook.cluster.snapshot import Snapshot

ID = "rdma"
ANNOTATION = "training.openshift.io/rdma"
EFA = "vpc.amazonaws.com/efa"
GPU = "nvidia.com/gpu"
VF = "openshift.io/mlx_vf"
SPEC = f"{PATHS['Worker']}/spec"
RESOURCES = f"{SPEC}/containers/0/resources"
NETWORKS_OF_WORKER = f"{PATHS['Worker']}/metadata"
ENV = f"{PATHS['Launcher']}/spec/containers/0/env"
GPUS = {"cpu": "8", GPU: 8}
HUGE_PAGES = "hugepages-2Mi"
ALL = f"gave the worker 32 {EFA}, 5120Mi hugepages-2Mi"
NO_PAGES = f"gave the worker 32 {EFA}"


def gpu_node(name: str, gpus: int = 8, **amounts: str | int) -> dict[str, Any]:
    return node(name, **{GPU: gpus}, **amounts)


P5 = gpu_node("p5", **{EFA: 32, "hugepages-2Mi": "42242Mi"})
SHARED = gpu_node("ib", **{"rdma/hca_shared_devices_a": 1000})
HOST = gpu_node("host", **{"nvidia.com/hostdev": 8})
TEAM = namespace("team")


def job(
    limits: Mapping[str, Any] | None = None,
    *,
    requested: str | None = "true",
    launcher: Mapping[str, Any] | None = None,
    networks: str | None = None,
    labels: Mapping[str, str] | None = None,
    pod: Mapping[str, Any] | None = None,
    security: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A job whose annotation has the value `requested`. The limits of its workers are `limits`, by default GPUS."""
    container = {
        "name": "mpi",
        "image": "registry.example.com/mpi:1",
        "resources": {"limits": dict(GPUS if limits is None else limits)},
        **({"securityContext": security} if security is not None else {}),
    }
    template: dict[str, Any] = {"spec": {"containers": [container], **(pod or {})}}
    if networks is not None:
        template["metadata"] = {"annotations": {NETWORKS: networks}}
    of_launcher = {"name": "mpi", "image": "registry.example.com/mpi:1", **(launcher or {})}
    metadata: dict[str, Any] = {"annotations": {ANNOTATION: requested}} if requested is not None else {}
    if labels:
        metadata["labels"] = dict(labels)
    return mpijob(metadata=metadata, worker=template, launcher={"spec": {"containers": [of_launcher]}}, **spec)


EXAMPLE = Example(settings={"environment": {"OMPI_MCA_pml": "ucx"}}, job=job(), view=Snapshot([TEAM, HOST]))


def both(amounts: Mapping[str, str]) -> dict[str, Any]:
    """The operations that add these amounts to the limits and create the requests."""
    limits = {f"{RESOURCES}/limits/{name.replace('/', '~1')}": amount for name, amount in amounts.items()}
    first, *others = amounts.items()
    requests = {f"{RESOURCES}/requests": dict([first])}
    return {**limits, **requests, **{f"{RESOURCES}/requests/{n.replace('/', '~1')}": a for n, a in others}}


def run(submitted: Any, *objects: dict[str, Any], **settings: Any) -> tuple[dict[str, Any], list[str]]:
    return inject(ID, submitted, view=Snapshot(objects), **settings)


def notes_without(lost: str, reason: str) -> list[str]:
    """The notes of a job on the node P5. If `lost` names a resource, it is left out because of `reason`."""
    if not lost:
        return [ALL]
    return [f"no RDMA: {reason}"] if lost == EFA else [f"no {lost}: {reason}", NO_PAGES]


class TestRequest:
    @pytest.mark.parametrize(("requested", "always"), [(None, False), ("false", False), ("false", True)])
    def test_job_that_does_not_request_rdma_gets_nothing(self, requested: str | None, always: bool) -> None:
        assert run(job(requested=requested), HOST, always=always) == ({}, [])

    @pytest.mark.parametrize(("requested", "always"), [("true", False), (None, True), ("true", True)])
    def test_annotation_or_policy_requests_devices(self, requested: str | None, always: bool) -> None:
        devices = both({"nvidia.com/hostdev": "8"}), ["gave the worker 8 nvidia.com/hostdev"]
        assert run(job(requested=requested), HOST, always=always) == devices

    def test_policy_adds_devices_only_to_jobs_with_accelerators(self) -> None:
        assert run(job({"cpu": 4}, requested=None), HOST, always=True) == ({}, [])
        assert run(job({"cpu": 4}), HOST)[0] == both({"nvidia.com/hostdev": "1"})

    @pytest.mark.parametrize("requested", ["", "yes", "True", "\x1b"])
    def test_invalid_annotation_value_is_reported(self, requested: str) -> None:
        shown = requested.replace("\x1b", "?")
        assert run(job(requested=requested), HOST) == ({}, [f'{ANNOTATION} "{shown}" is neither "true" nor "false"'])

    def test_launcher_that_is_a_worker_gets_devices(self) -> None:
        resources = {"resources": {"limits": {GPU: 4}}}
        _, notes = run(job(launcher=resources, runLauncherAsWorker=True), HOST)
        assert notes == ["gave the launcher 4 nvidia.com/hostdev", "gave the worker 8 nvidia.com/hostdev"]

    def test_job_of_another_controller_stays_unchanged(self) -> None:
        assert run(job(run_policy={"managedBy": "kueue.x-k8s.io/multikueue"}), HOST) == ({}, [])


class TestDevice:
    @pytest.mark.parametrize(
        ("limits", "nodes", "settings", "expected"),
        [
            (GPUS, [P5], {}, {EFA: "32", "hugepages-2Mi": "5120Mi"}),
            ({GPU: 4, "memory": "1Gi"}, [P5], {}, {EFA: "16", "hugepages-2Mi": "5120Mi"}),
            ({GPU: 4}, [P5], {}, {EFA: "16"}),
            (GPUS, [P5], {"hugepages": {}}, {EFA: "32"}),
            ({**GPUS, "hugepages-2Mi": "2Mi"}, [P5], {}, {EFA: "32"}),
            (GPUS, [gpu_node("a", **{EFA: 32, "hugepages-2Mi": "5118Mi"})], {}, {EFA: "32"}),
            (GPUS, [P5, gpu_node("a", **{EFA: 32})], {}, {EFA: "32"}),
            (GPUS, [P5], {"perGpu": 1, "hugepages": {}}, {EFA: "8"}),
            (GPUS, [P5], {"perPod": 2, "hugepages": {}}, {EFA: "2"}),
            ({"cpu": 4}, [P5], {"perGpu": 4, "hugepages": {}}, {EFA: "1"}),
            ({GPU: 1}, [gpu_node("a", **{"nvidia.com/hostdev": 4})], {}, {"nvidia.com/hostdev": "1"}),
            ({GPU: 3}, [gpu_node("a", **{"nvidia.com/hostdev": 4})], {}, {"nvidia.com/hostdev": "1"}),
            ({GPU: 4}, [HOST, gpu_node("a", **{"nvidia.com/hostdev": 4})], {}, {"nvidia.com/hostdev": "2"}),
            (GPUS, [SHARED], {}, {"rdma/hca_shared_devices_a": "1"}),
            (GPUS, [SHARED], {"shared": []}, {"rdma/hca_shared_devices_a": "1000"}),
            (GPUS, [SHARED], {"perGpu": 1}, {"rdma/hca_shared_devices_a": "8"}),
            # Nodes that could not hold the pods are ignored.
            (GPUS, [HOST, node("c", **{EFA: 1}), gpu_node("s", 4, **{"rdma/ib": 1})], {}, {"nvidia.com/hostdev": "8"}),
            (GPUS, [HOST, P5], {"resource": "nvidia.com/hostdev"}, {"nvidia.com/hostdev": "8"}),
            (GPUS, [gpu_node("a", **{VF: 16})], {"resource": VF}, {VF: "16"}),
            (GPUS, [gpu_node("a", **{VF: 16})], {"devices": ["openshift.io/*"]}, {VF: "16"}),
            (GPUS, [], {"resource": VF, "perGpu": 2}, {VF: "16"}),
            (GPUS, [], {"resource": "rdma/ib"}, {"rdma/ib": "1"}),
            (GPUS, [], {"resource": EFA, "perGpu": 4}, {EFA: "32"}),
            ({"amd.com/gpu": 8}, [node("m", **{"amd.com/gpu": 8, "amd.com/vnic": 8})], {}, {"amd.com/vnic": "8"}),
        ],
    )
    def test_device_and_number_come_from_nodes_and_policy(
        self, limits: Any, nodes: list[Any], settings: dict[str, Any], expected: dict[str, str]
    ) -> None:
        added, notes = run(job(limits), *nodes, **settings)
        assert added == both(expected)
        assert notes == [f"gave the worker {', '.join(f'{amount} {name}' for name, amount in expected.items())}"]

    def test_only_nodes_that_match_the_node_selector_are_considered(self) -> None:
        nodes = [P5, node("x", {"pool": "ib"}, **{GPU: 8, "rdma/ib": 8})]
        added, _ = run(job(pod={"nodeSelector": {"pool": "ib"}}), *nodes)
        assert added == both({"rdma/ib": "1"})

    @pytest.mark.parametrize(
        ("nodes", "settings", "reason"),
        [
            ([], {}, "no known node could run the pods, and the policy names no device"),
            ([node("c", **{EFA: 1})], {}, "no known node could run the pods, and the policy names no device"),
            ([gpu_node("a")], {}, "no node that could hold the pods has an RDMA device"),
            ([gpu_node("a", **{EFA: 0})], {}, "no node that could hold the pods has an RDMA device"),
            (
                [HOST, P5],
                {},
                f"nodes have several RDMA devices. Choose nodes, or request one device: nvidia.com/hostdev, {EFA}",
            ),
            ([], {"resource": VF}, f"how many {VF} a pod needs is unknown: set perGpu or perPod in the policy"),
        ],
    )
    def test_unknown_device_or_number_is_not_injected(
        self, nodes: list[Any], settings: dict[str, Any], reason: str
    ) -> None:
        assert run(job(), *nodes, **settings) == ({}, [f"no RDMA: {reason}"])

    def test_number_is_unknown_if_accelerators_are_requested_by_claims(self) -> None:
        claims: dict[str, Any] = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "eight"}]}
        reason = "no RDMA: how many nvidia.com/hostdev a pod needs is unknown: set perPod in the policy"
        assert run(job({"cpu": 8}, pod=claims), HOST) == ({}, [reason])
        assert run(job({"cpu": 8}, pod=claims), HOST, perPod=8)[0] == both({"nvidia.com/hostdev": "8"})
        assert run(job(pod=claims), HOST)[0] == both({"nvidia.com/hostdev": "8"})

    @pytest.mark.parametrize("name", [EFA, "rdma/ib", VF])
    @pytest.mark.parametrize("kind", ["limits", "requests"])
    def test_pod_that_requests_a_device_stays_unchanged(self, name: str, kind: str) -> None:
        submitted = job()
        second = {"name": "other", "image": "x:1", "resources": {kind: {name: 1}}}
        submitted["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append(second)
        assert run(submitted, P5, resource=VF, networks=["fabric/rail-0"]) == ({}, [])


class TestNetworks:
    RAILS = (network("rail-0", VF), network("rail-1", VF), network("plain"), network("storage", "openshift.io/other"))

    def test_each_attachment_gets_its_device(self) -> None:
        added, notes = run(job(), HOST, *self.RAILS, networks=["fabric/rail-0", "fabric/rail-1", "fabric/plain"])
        attached = "fabric/rail-0, fabric/rail-1, fabric/plain"
        assert added == {**both({VF: "2"}), NETWORKS_OF_WORKER: {"annotations": {NETWORKS: attached}}}
        assert notes == [f"gave the worker the networks {attached}, 2 {VF}"]

    def test_networks_of_the_user_are_included(self) -> None:
        submitted = job(networks="fabric/storage,fabric/rail-0")
        added, _ = run(submitted, *self.RAILS, networks=["fabric/rail-0", "fabric/rail-1"])
        key = f"{NETWORKS_OF_WORKER}/annotations/{NETWORKS.replace('/', '~1')}"
        assert added == {
            **both({"openshift.io/other": "1", VF: "2"}),
            key: "fabric/storage,fabric/rail-0, fabric/rail-1",
        }

    def test_network_without_a_device_gets_the_device_of_the_nodes(self) -> None:
        added, _ = run(job(), SHARED, *self.RAILS, networks=["fabric/plain"])
        assert added.keys() == {*both({"rdma/hca_shared_devices_a": "1"}), NETWORKS_OF_WORKER}

    @pytest.mark.parametrize("resource", ["cpu", "a b/c", "x/"])
    def test_network_with_an_invalid_device_name_is_reported(self, resource: str) -> None:
        reason = "no RDMA: the devices of the networks are not known, and the policy names no device"
        assert run(job(), HOST, network("a", resource), networks=["fabric/a"]) == ({}, [reason])

    def test_unknown_network_of_the_policy_is_reported(self) -> None:
        reason = "no RDMA: it is unknown whether NetworkAttachmentDefinition fabric/rail-0 exists"
        assert run(job(), HOST, networks=["fabric/rail-0"]) == ({}, [reason])
        assert run(job(), HOST, networks=["fabric/rail-0"], resource=VF, perGpu=1) == ({}, [reason])

    def test_unknown_network_of_the_user_is_reported(self) -> None:
        reason = "no RDMA: the devices of the networks are not known, and the policy names no device"
        assert run(job(networks="own"), HOST) == ({}, [reason])
        assert run(job(networks="own"), HOST, resource=VF, perGpu=1)[0] == both({VF: "8"})

    def test_missing_network_of_the_policy_is_reported(self) -> None:
        reason = "no RDMA: NetworkAttachmentDefinition fabric/rail-9 does not exist"
        assert run(job(), HOST, *self.RAILS, networks=["fabric/rail-9"]) == ({}, [reason])


@pytest.mark.parametrize("pod", [{"os": {"name": "windows"}}, {"nodeSelector": {"kubernetes.io/os": "windows"}}])
def test_pods_for_windows_stay_unchanged(pod: dict[str, Any]) -> None:
    assert run(job(pod=pod), HOST, ipcLock=True) == ({}, ["no RDMA: the worker is for Windows"])


class TestQueues:
    LABELS: ClassVar = {"kueue.x-k8s.io/queue-name": "training"}
    QUEUE = local_queue("training", "gpus", namespace="team")

    def covering(self, *resources: str) -> dict[str, Any]:
        return cluster_queue("gpus", {"default": dict.fromkeys(resources, "1Ti")})

    @pytest.mark.parametrize(
        ("resources", "extra", "lost"),
        [
            (["cpu", GPU, EFA, HUGE_PAGES], "", ""),
            (["cpu", GPU], "", EFA),
            (["cpu", GPU, EFA], "", HUGE_PAGES),
            (["cpu", GPU, HUGE_PAGES], "resources: {excludeResourcePrefixes: [vpc.amazonaws.com]}", ""),
            (["cpu"], "resources: {quotaCheckStrategy: IgnoreUndeclared}", ""),
            (["cpu", HUGE_PAGES], f"resources: {{transformations: [{{input: {EFA}}}]}}", ""),
            (["cpu"], "integrations: {frameworks: [pod]}", ""),
        ],
    )
    def test_device_that_the_queue_does_not_cover_is_not_injected(
        self, resources: list[str], extra: str, lost: str
    ) -> None:
        text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
        frameworks = "" if "frameworks" in extra else "integrations: {frameworks: [kubeflow.org/mpijob]}\n"
        configured = config(extra, text + frameworks)
        _, notes = run(job(labels=self.LABELS), configured, TEAM, self.QUEUE, self.covering(*resources), P5)
        assert notes == notes_without(lost, f"ClusterQueue gpus does not cover {lost}")

    @pytest.mark.parametrize(
        ("quotas", "lost", "reason"),
        [
            ({EFA: 64}, "", ""),
            ({EFA: 63}, EFA, f"has at most 63 {EFA}, and the job would need 64"),
            ({HUGE_PAGES: "8Gi"}, HUGE_PAGES, f"has at most 8Gi {HUGE_PAGES}, and the job would need 10Gi"),
            ({GPU: 1}, "", ""),  # the job never fits, even without the device
        ],
    )
    def test_device_above_the_quota_of_the_queue_is_not_injected(
        self, quotas: dict[str, Any], lost: str, reason: str
    ) -> None:
        enough = {"cpu": 1000, GPU: 1000, EFA: 1000, HUGE_PAGES: "1Ti"}
        target = cluster_queue("gpus", {"small": {**enough, **quotas}, "smaller": {**enough, **quotas, EFA: 2}})
        flavors = flavor("small"), flavor("smaller")
        added, notes = run(job(labels=self.LABELS), config(), TEAM, *flavors, self.QUEUE, target, P5)
        assert notes == notes_without(lost, f"ClusterQueue gpus {reason}")
        assert bool(added) == (lost != EFA)

    def test_flavor_for_other_nodes_is_ignored(self) -> None:
        amounts: dict[str, Any] = {"cpu": 1000, GPU: 1000}
        target = cluster_queue("gpus", {"here": {**amounts, EFA: 2}, "there": {**amounts, EFA: 1000}})
        flavors = [flavor("here", {"pool": "a"}), flavor("there", {"pool": "b"})]
        submitted = job(labels=self.LABELS, pod={"nodeSelector": {"pool": "a"}})
        labelled = {**P5, "metadata": {"name": "p5", "labels": {"pool": "a"}}}
        reason = f"no RDMA: ClusterQueue gpus has at most 2 {EFA}, and the job would need 64"
        assert run(submitted, config(), TEAM, *flavors, self.QUEUE, target, labelled, hugepages={}) == ({}, [reason])

    def test_device_is_not_injected_if_the_queue_is_unknown(self) -> None:
        reason = 'no RDMA: the resources of the ClusterQueue of "training" are unknown'
        assert run(job(labels=self.LABELS), P5) == ({}, [reason])

    @pytest.mark.parametrize("objects", [[config(), TEAM], [config()], [TEAM]])
    def test_quota_of_the_default_queue_applies(self, objects: list[Any]) -> None:
        default = local_queue("default", "gpus", namespace="team")
        reason = f"no RDMA: ClusterQueue gpus does not cover {EFA}"
        assert run(job(), *objects, default, self.covering("cpu", GPU), P5) == ({}, [reason])

    def test_device_is_not_injected_if_the_default_queue_is_unknown(self) -> None:
        reason = "no RDMA: the job's Kueue queue is unknown"
        assert run(job(), config(), TEAM, self.covering("cpu", GPU), P5) == ({}, [reason])

    def test_invalid_queue_name_is_printable_in_the_note(self) -> None:
        _, (note,) = run(job(labels={"kueue.x-k8s.io/queue-name": "a\x1b\u202e" + "x" * 80}), P5)
        assert note == 'no RDMA: the resources of the ClusterQueue of "a??xxxx..." are unknown'

    def test_covered_device_is_injected_if_kueues_configuration_is_unknown(self) -> None:
        objects = TEAM, self.QUEUE, self.covering(EFA), P5
        assert run(job(labels=self.LABELS), *objects, hugepages={})[1] == [NO_PAGES]


class TestResourceQuotas:
    @pytest.mark.parametrize(
        ("hard", "lost", "reason"),
        [
            ({f"requests.{EFA}": 64}, "", ""),
            ({f"requests.{EFA}": 63}, EFA, f"has 63 {EFA}, and the job would need 64"),
            ({f"requests.{HUGE_PAGES}": "1Gi"}, HUGE_PAGES, f"has 1Gi {HUGE_PAGES}, and the job would need 10Gi"),
            ({f"requests.{GPU}": 1}, "", ""),
        ],
    )
    def test_device_above_the_resource_quota_is_not_injected(
        self, hard: dict[str, Any], lost: str, reason: str
    ) -> None:
        added, notes = run(job(), TEAM, P5, quota(hard, namespace="team"))
        assert notes == notes_without(lost, f"ResourceQuota q {reason}")
        assert bool(added) == (lost != EFA)

    def test_current_usage_is_ignored(self) -> None:
        full = quota({f"requests.{EFA}": 64}, {f"requests.{EFA}": 64}, namespace="team")
        assert run(job(), TEAM, P5, full)[1] == [ALL]


class TestNodesWithoutTheDevice:
    @pytest.mark.parametrize(
        ("nodes", "settings", "resource"),
        [
            ([HOST], {"resource": VF, "perPod": 1}, f"1 {VF}"),
            ([P5, HOST], {"resource": EFA, "perGpu": 5}, f"40 {EFA}"),
            ([gpu_node("a"), node("c", **{EFA: 32})], {"resource": EFA, "perPod": 32}, f"32 {EFA}"),
            ([HOST, network("rail-0", VF)], {"networks": ["fabric/rail-0"]}, f"1 {VF}"),
        ],
    )
    def test_policy_does_not_inject_a_device_that_all_nodes_lack(
        self, nodes: list[Any], settings: dict[str, Any], resource: str
    ) -> None:
        reason = f"no RDMA: no node that could hold the pods has {resource}"
        assert run(job(requested=None), *nodes, always=True, **settings) == ({}, [reason])
        # A job with the annotation may wait for new nodes. The rule `accelerator-available` reports the job.
        assert run(job(), *nodes, always=True, **settings)[1][0].startswith("gave the worker")

    def test_policy_injects_the_device_if_nodes_are_unknown(self) -> None:
        assert run(job(requested=None), always=True, resource=VF, perPod=1)[0] == both({VF: "1"})


class TestEnvironment:
    VARIABLES: ClassVar = {"NCCL_IB_HCA": "mlx5", "OMPI_MCA_pml": "ucx", "FI_PROVIDER": "efa"}

    def notes(self, launcher: dict[str, Any], implementation: str | None = None) -> list[str]:
        submitted = job(launcher=launcher, **({"mpiImplementation": implementation} if implementation else {}))
        return run(submitted, HOST, environment=self.VARIABLES)[1][1:]

    @pytest.mark.parametrize("implementation", ["Intel", "MPICH"])
    def test_hydra_exports_all_variables(self, implementation: str) -> None:
        expected = ["set NCCL_IB_HCA, OMPI_MCA_pml, FI_PROVIDER for the ranks"]
        assert self.notes({"command": ["mpirun", "-n", "2", "a"]}, implementation) == expected
        assert self.notes({}, implementation) == expected

    def test_open_mpi_exports_listed_variables(self) -> None:
        launcher = {"command": ["mpirun"], "args": ["-np", "2", "-x", "NCCL_IB_HCA", "-x", "FI_PROVIDER", "a"]}
        assert self.notes(launcher) == ["set NCCL_IB_HCA, OMPI_MCA_pml, FI_PROVIDER for the ranks"]

    def test_variable_is_added_to_the_launcher(self) -> None:
        submitted = job(launcher={"env": [{"name": "A", "value": "1"}]})
        added, _ = run(submitted, HOST, environment={"OMPI_MCA_pml": "ucx"})
        assert added[f"{ENV}/-"] == {"name": "OMPI_MCA_pml", "value": "ucx"}

    @pytest.mark.parametrize("launcher", [{}, {"command": ["mpirun", "-x", "NCCL_IB_HCA_X", "a"]}])
    def test_variable_that_does_not_reach_the_ranks_is_reported(self, launcher: dict[str, Any]) -> None:
        lost = "variables of the policy would not reach the ranks. Add to mpirun: -x NCCL_IB_HCA -x FI_PROVIDER"
        assert self.notes(launcher) == [lost, "set OMPI_MCA_pml for the ranks"]

    @pytest.mark.parametrize(
        "launcher",
        [
            {"command": ["mpirun", "a"], "env": [{"name": "OMPI_MCA_mca_base_env_list", "value": "A"}]},
            {"command": ["mpirun", "-mca", "mca_base_env_list", "A", "a"]},
        ],
    )
    def test_note_names_mca_base_env_list_instead_of_the_option_x(self, launcher: dict[str, Any]) -> None:
        note = "variables of the policy would not reach the ranks. Add to mca_base_env_list: NCCL_IB_HCA;FI_PROVIDER"
        assert self.notes(launcher)[0] == note

    def test_variables_of_the_user_stay(self) -> None:
        env = [{"name": "OMPI_MCA_pml", "value": "ob1"}, {"name": "FI_PROVIDER"}]
        assert self.notes({"command": ["mpirun", "-x", "NCCL_IB_HCA=mlx4", "a"], "env": env}) == []

    def test_variables_are_added_for_devices_of_the_user(self) -> None:
        submitted = job({EFA: 1})
        assert run(submitted, environment={"OMPI_MCA_pml": "ucx"})[1] == ["set OMPI_MCA_pml for the ranks"]

    def test_variables_are_not_added_without_devices(self) -> None:
        assert run(job(), environment={"OMPI_MCA_pml": "ucx"})[0] == {}


class TestIpcLock:
    ADDED = f"{SPEC}/containers/0/securityContext"

    def run(self, submitted: Any, *objects: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        added, notes = run(submitted, HOST, *objects, ipcLock=True)
        return {path: value for path, value in added.items() if "resources" not in path}, notes[1:]

    def test_ipc_lock_is_added_if_allowed(self) -> None:
        expected = {self.ADDED: {"capabilities": {"add": ["IPC_LOCK"]}}}
        assert self.run(job(), TEAM) == (expected, ["gave the worker IPC_LOCK"])
        root = job(security={"runAsUser": 0}, pod={"securityContext": {"runAsNonRoot": False, "runAsUser": 1000}})
        assert self.run(root, TEAM)[1] == ["gave the worker IPC_LOCK"]

    def test_ipc_lock_is_added_to_other_capabilities(self) -> None:
        added, _ = self.run(job(security={"capabilities": {"add": ["SYS_PTRACE"], "drop": ["ALL"]}}), TEAM)
        assert added == {f"{self.ADDED}/capabilities/add/-": "IPC_LOCK"}

    @pytest.mark.parametrize("capabilities", [{"add": ["IPC_LOCK"]}, {"add": ["ALL"]}, {"drop": ["IPC_LOCK"]}])
    def test_user_capabilities_stay(self, capabilities: dict[str, Any]) -> None:
        assert self.run(job(security={"capabilities": capabilities}), TEAM) == ({}, [])

    @pytest.mark.parametrize(
        ("submitted", "labels", "reason"),
        [
            (job(), None, "the Pod Security level of the namespace is not known"),
            (job(), {"enforce": "baseline"}, "the namespace enforces baseline"),
            (job(), {"enforce": "restricted"}, "the namespace enforces restricted"),
            (job(), {"enforce": "nonsense"}, "the namespace enforces restricted"),
            *(
                (submitted, {}, "it has no effect for a container that does not run as root")
                for submitted in (
                    job(security={"runAsUser": 1000}),
                    job(pod={"securityContext": {"runAsUser": 1000}}),
                    job(pod={"securityContext": {"runAsNonRoot": True}}),
                )
            ),
        ],
    )
    def test_ipc_lock_is_not_added_if_forbidden_or_without_effect(
        self, submitted: Any, labels: dict[str, str] | None, reason: str
    ) -> None:
        enforced = {f"pod-security.kubernetes.io/{mode}": level for mode, level in (labels or {}).items()}
        objects = [] if labels is None else [namespace("team", **enforced)]
        assert self.run(submitted, *objects) == ({}, [f"no IPC_LOCK: {reason}"])

    def test_ipc_lock_is_added_only_if_an_scc_accepts_it(self) -> None:
        reason = "no IPC_LOCK: no SCC that the pods may use accepts it"
        assert self.run(job(), *openshift.openshift(namespace="team")) == ({}, [reason])
        allowed = openshift.openshift({"default": ["privileged"]}, namespace="team")
        assert self.run(job(), *allowed)[1] == ["gave the worker IPC_LOCK"]

    def test_ipc_lock_is_not_added_by_default(self) -> None:
        assert run(job(), HOST, TEAM)[1] == ["gave the worker 8 nvidia.com/hostdev"]
