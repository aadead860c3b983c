"""The rule `accelerator-available` checks that each pod fits on a node, and that the nodes can hold the whole job."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.controlplane.nodes import GPU, gpu_nodes
from tests.support.any_job import Json
from tests.support.devices import device_class
from tests.support.jobs import changed
from tests.support.kueue_objects import cluster_queue, local_queue
from tests.support.rule_checks import as_texts, decide, violations
from webhook.admission.limits import MAX_WARNING_CHARACTERS
from webhook.admission.messages import Finding
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.rules import REGISTRY

RULE = "accelerator-available"
WORKERS = "spec.mpiReplicaSpecs[Worker]"
POD = "spec.mpiReplicaSpecs[Worker].template.spec"
SPEC = "Worker.template.spec"
LIMITS = f"{SPEC}.containers.0.resources.limits"
PRODUCT = "nvidia.com/gpu.product"
ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
SLOTS, COMMAND = "spec.slotsPerWorker", "Launcher.template.spec.containers.0.command"
RANKS = "Set it to 9, or -np to 64."
UNREAD = "Set it to 8, or to the ranks that mpirun starts on a worker."
ASK = (
    "16 nvidia.com/gpu, but no node has more than 8. "
    "Request 8 nvidia.com/gpu or less for each worker, overhead and sidecars included."
)
TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}


def nodes(**changes: Any) -> list[Json]:
    """Eight nodes with GPUs and four small nodes without GPUs. `changes` is the spec of the nodes with GPUs."""
    with_gpus = [{**node, "spec": changes} for node in gpu_nodes(8)]
    without = gpu_nodes(4, gpus=0, prefix="cpu", cpu=32, memory="128Gi", zone="zone-b")
    return [{"apiVersion": "v1", "kind": "Node", **node} for node in (*with_gpus, *without)]


CLUSTER = Snapshot(nodes())


def gpus(count: int, **amounts: Any) -> Json:
    return {LIMITS: {"nvidia.com/gpu": count, **amounts}}


def selected(**labels: str) -> Json:
    return {f"{SPEC}.nodeSelector": labels}


def required(*terms: list[Json]) -> Json:
    listed = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {f"{SPEC}.affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": listed}}}


def condition(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        gpus(8, cpu="96", memory="1Ti"),
        gpus(0, **{"rdma/hca": 0}),
        {**gpus(8), f"{SPEC}.nodeSelector": {PRODUCT: GPU, "kubernetes.io/hostname": "anything"}},
        required([condition("kubernetes.io/hostname", "In", "gone")]),
        required([condition("zone", "Exists")], [condition(PRODUCT, "NotIn", "A100")]),
        {LIMITS: {"cpu": "32"}, f"{SPEC}.nodeSelector": {ZONE: "zone-b"}},
        {LIMITS: {"storage": "1Pi"}},  # the scheduler ignores storage
    ],
)
def test_pod_that_a_node_could_hold_is_accepted(changes: Json) -> None:
    assert violations(RULE, changes, view=CLUSTER) == []


@pytest.mark.parametrize(
    ("requested", "existing", "fix"),
    [
        ("nvida.com/gpu", ["nvidia.com/gpu", "amd.com/gpu"], "Use nvidia.com/gpu instead of nvida.com/gpu."),
        ("nvida.com/gpu", ["amd.com/gpu"], "Check its name and the nodes."),
        ("aws.amazon.com/neuron", ["vpc.amazonaws.com/efa"], "Check its name and the nodes."),
        ("rdma/hca_shared_device_a", ["rdma/hca_shared_devices_a"], "Use rdma/hca_shared_devices_a instead of {}."),
    ],
)
def test_missing_device_is_reported_with_the_closest_name(requested: str, existing: list[str], fix: str) -> None:
    (node,) = gpu_nodes(1, gpus=0)
    devices = {**node["status"]["allocatable"], **dict.fromkeys(existing, "8")}
    listed = [{"apiVersion": "v1", "kind": "Node", **node, "status": {**node["status"], "allocatable": devices}}]
    (violation,) = violations(RULE, {LIMITS: {requested: 1}}, view=Snapshot(listed))
    assert violation.fix == fix.format(requested)


def test_other_resources_are_not_reported_if_no_node_has_the_device() -> None:
    """Nodes with the missing device might have more of the other resources."""
    limits = {"habana.ai/gaudi": 8, "rdma/ib": 1, "cpu": "1k", "memory": "1Pi", "hugepages-2Mi": "95000Mi"}
    result = violations(RULE, {LIMITS: limits}, view=CLUSTER)
    assert [violation.message for violation in result] == ["no node has habana.ai/gaudi", "no node has rdma/ib"]


@pytest.mark.parametrize(
    ("count", "workers", "fix"),
    [(16, 4, "Use 8 workers with 8."), (9, 4, "Use 6 workers with 6."), (11, 1, "Use 11 workers with 1.")],
)
def test_worker_with_more_gpus_than_a_node_is_reported(count: int, workers: int, fix: str) -> None:
    (result,) = violations(RULE, {**gpus(count), "Worker.replicas": workers}, view=CLUSTER)
    assert (result.path, result.message, result.fix) == (WORKERS, f"no node has {count} nvidia.com/gpu", fix)


@pytest.mark.parametrize(
    ("limits", "fault", "fix"),
    [
        (
            {"memory": "1.2Ti"},
            "1.2Ti memory, but no node has more than 1Ti",
            "Request 1Ti memory or less for each worker, overhead and sidecars included.",
        ),
        (
            {"nvidia.com/gpus": 1},
            "no node has nvidia.com/gpus, but nvidia.com/gpu",
            "Use nvidia.com/gpu instead of nvidia.com/gpus.",
        ),
        ({"vendor.io/zzz": 1}, "no node has vendor.io/zzz", "Check its name and the nodes."),
    ],
)
def test_worker_that_no_node_could_hold_is_reported(limits: Json, fault: str, fix: str) -> None:
    (result,) = violations(RULE, {LIMITS: limits}, view=CLUSTER)
    assert (result.path, result.message, result.fix) == (f"{POD}.containers", fault, fix)


@pytest.mark.parametrize(
    ("changes", "key", "value", "fault", "fix"),
    [
        ({}, PRODUCT, "H100", f'no node has "H100", but {GPU}', f"Use {GPU}."),
        ({}, RACK, "a", 'no node has "a", but rack-0, rack-1', "Use one of rack-0, rack-1."),
        ({}, "nvidia.com/gpu.products", "a", "no node has this label", f"Use {PRODUCT}."),
        ({}, "zzz", "a", "no node has this label", "Remove it, or label the nodes."),
        # For each demand there is a node that meets it, but no node meets all demands.
        (gpus(1), ZONE, "zone-b", 'no node that otherwise fits has "zone-b", but zone-a', "Use zone-a."),
        (
            {LIMITS: {"cpu": "64"}},
            ZONE,
            "zone-b",
            'no node that otherwise fits has "zone-b", but zone-a',
            "Use zone-a.",
        ),
    ],
)
def test_node_selector_that_no_node_matches_is_reported(
    changes: Json, key: str, value: str, fault: str, fix: str
) -> None:
    (result,) = violations(RULE, {**changes, **selected(**{key: value})}, view=CLUSTER)
    assert (result.path, result.message, result.fix) == (f"{POD}.nodeSelector[{key}]", fault, fix)


@pytest.mark.parametrize(
    ("terms", "fault", "fix"),
    [
        ([[condition(ZONE, "In", "zone-c", "zone-d")]], f"no node has {ZONE} In zone-c, zone-d", "Use zone-a."),
        ([[condition("zzz", "Exists")]], "no node has zzz Exists", "Remove it, or label the nodes."),
        (
            [[condition("zzz", "Exists")], [condition("zzz", "Gt", "3")]],
            "no node satisfies one of its 2 terms",
            "Request labels that nodes have.",
        ),
        ([[]], "selects no node, because it has no conditions", "Write some, or remove it."),
        # No node meets both conditions.
        (
            [[condition(ZONE, "In", "zone-b"), condition(PRODUCT, "Exists")]],
            f"no node has {ZONE} In zone-b",
            "Use zone-a.",
        ),
    ],
)
def test_affinity_that_no_node_matches_is_reported(terms: list[list[Json]], fault: str, fix: str) -> None:
    (result,) = violations(RULE, required(*terms), view=CLUSTER)
    assert (result.path, result.message, result.fix) == (f"{POD}.affinity.nodeAffinity", fault, fix)


def test_every_demand_that_no_node_meets_is_reported() -> None:
    changes = {**gpus(16, cpu="500"), **selected(**{PRODUCT: "A100"})}
    assert [one.path for one in violations(RULE, changes, view=CLUSTER)] == [
        WORKERS,
        f"{POD}.nodeSelector[{PRODUCT}]",
        f"{POD}.containers",
    ]


def test_launcher_that_no_node_could_hold_is_reported() -> None:
    (result,) = violations(RULE, {"Launcher.template.spec.containers.0.resources.limits.cpu": "97"}, view=CLUSTER)
    assert result.path.startswith("spec.mpiReplicaSpecs[Launcher]")
    assert result.fix == "Request 96 cpu or less for the launcher, overhead and sidecars included."


class TestTaints:
    TAINTED = Snapshot(nodes(taints=[TAINT]))

    def test_taints_that_exclude_the_job_are_reported(self) -> None:
        assert as_texts(violations(RULE, view=self.TAINTED)) == [
            f"(advice) {POD}.tolerations: nodes that otherwise fit have the taint nvidia.com/gpu:NoSchedule"
        ]

    @pytest.mark.parametrize(
        ("changes", "settings"),
        [
            ({f"{SPEC}.tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}, {}),
            ({}, {"toleratedTaints": ["nvidia.com/gpu"]}),
            ({"metadata.labels": {"kueue.x-k8s.io/queue-name": "team"}}, {}),  # a flavor may add tolerations
            ({f"{SPEC}.runtimeClassName": "nvidia"}, {}),  # a RuntimeClass may add tolerations
        ],
    )
    def test_tolerated_taints_are_accepted(self, changes: Json, settings: Json) -> None:
        assert violations(RULE, changes, settings=settings, view=self.TAINTED) == []

    def test_taint_of_a_temporarily_unavailable_node_is_ignored(self) -> None:
        taints = [{"key": f"node.kubernetes.io/{state}", "effect": "NoSchedule"} for state in ("unschedulable", "x")]
        assert violations(RULE, view=Snapshot(nodes(unschedulable=True, taints=taints))) == []


def test_unknown_nodes_cause_no_violation() -> None:
    assert violations(RULE, gpus(1000)) == []
    assert violations(RULE, {**gpus(1000), "spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, view=CLUSTER) == []


def test_ignored_resources_cause_no_violation() -> None:
    changes = {LIMITS: {"vendor.io/card": 1000}}
    assert violations(RULE, changes, settings={"ignoredResources": ["vendor.io/*"]}, view=CLUSTER) == []


QUEUED = {"metadata.labels": {"kueue.x-k8s.io/queue-name": "team"}}
BY_KARPENTER = Snapshot(
    [
        {
            **node,
            "metadata": {**node["metadata"], "labels": {**node["metadata"]["labels"], "karpenter.sh/nodepool": "a"}},
        }
        for node in nodes()
    ]
)


@pytest.mark.parametrize(
    ("changes", "autoscaled", "view", "ceiling"),
    [
        (gpus(16), False, CLUSTER, "deny"),
        ({LIMITS: {"memory": "1.2Ti"}}, False, CLUSTER, "deny"),
        (gpus(16), None, CLUSTER, "warn"),
        (gpus(16), True, CLUSTER, "audit"),
        ({**gpus(16), **QUEUED}, False, CLUSTER, "warn"),  # Kueue may provision nodes
        (gpus(16), False, BY_KARPENTER, "warn"),
        # An administrator may add a device plugin or a label to the existing nodes, or remove a taint.
        ({LIMITS: {"vendor.io/card": 1}}, False, CLUSTER, "warn"),
        (selected(zone="zone-z"), False, CLUSTER, "warn"),
        ({**gpus(8), **selected(**{ZONE: "zone-b"})}, False, CLUSTER, "warn"),
        ({}, False, Snapshot(nodes(taints=[TAINT])), "warn"),
    ],
)
def test_oversized_pod_is_rejected_without_autoscaling(
    changes: Json, autoscaled: bool | None, view: Snapshot, ceiling: str
) -> None:
    result = violations(RULE, changes, settings={"autoscaled": autoscaled}, view=view)
    assert [each.ceiling for each in result] == [ceiling]


def worker_nodes(count: int, **labels: str) -> list[Json]:
    result = [{"apiVersion": "v1", "kind": "Node", **node} for node in gpu_nodes(count)]
    for node in result:
        node["metadata"]["labels"] |= {"pool": "big", **labels}
    return result


SIX = Snapshot(worker_nodes(6))
ALIKE = {"limits": {"nvidia.com/gpu": 8, "cpu": "16", "memory": "64Gi"}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({**gpus(8), "Worker.replicas": 6}, None),
        ({**gpus(8), "Worker.replicas": 60}, "60 workers, nodes for 6. Set replicas to 6 or fewer."),
        ({**gpus(4), "Worker.replicas": 12}, None),
        ({**gpus(3), "Worker.replicas": 13}, "13 workers, nodes for 12. Set replicas to 12 or fewer."),
        ({LIMITS: {"memory": "334Gi"}, "Worker.replicas": 18}, None),
        (
            {LIMITS: {"memory": "400Gi"}, "Worker.replicas": 13},
            "13 workers, nodes for 12. Set replicas to 12 or fewer.",
        ),
        ({LIMITS: {"cpu": "96"}, "Worker.replicas": 7}, "7 workers, nodes for 6. Set replicas to 6 or fewer."),
        ({LIMITS: {}, "Worker.replicas": 99}, None),
        ({**gpus(8), **selected(pool="small"), "Worker.replicas": 60}, 'no node has "small", but big. Use big.'),
        (
            {f"{role}.template.spec.containers.0.resources": ALIKE for role in ("Launcher", "Worker")}
            | {"Worker.replicas": 6, "spec.runLauncherAsWorker": True},
            "7 pods, nodes for 6. Set replicas to 5 or fewer.",
        ),
    ],
)
def test_job_larger_than_all_nodes_is_reported(changes: Json, expected: str | None) -> None:
    result = violations(RULE, changes, view=SIX)
    assert [f"{each.message}. {each.fix}" for each in result] == ([expected] if expected else [])
    for each in result:
        assert each.fix in Finding(RULE, each).warning
        (refused,) = violations(RULE, changes, settings={"autoscaled": False}, view=SIX)
        assert refused.advisory == ("no node has" in each.message)


MANY = {**gpus(8), "Worker.replicas": 60}
QUEUE = [local_queue("team", "gpus"), cluster_queue("gpus")]
CHECKED = [local_queue("team", "gpus"), cluster_queue("gpus", admissionChecks=["provision"])]


@pytest.mark.parametrize(
    ("changes", "autoscaled", "objects", "ceiling"),
    [
        (MANY, False, worker_nodes(6), ["deny"]),
        (MANY, None, worker_nodes(6), ["warn"]),
        (MANY, True, worker_nodes(6), ["audit"]),
        (MANY | QUEUED, False, [*worker_nodes(6), *QUEUE], ["warn"]),
        # Nothing is reported if Kueue may provision nodes, or Karpenter makes nodes, or the nodes are unknown.
        (MANY | QUEUED, False, [*worker_nodes(6), *CHECKED], []),
        (MANY | QUEUED, False, worker_nodes(6), []),
        (MANY, False, worker_nodes(6, **{"karpenter.sh/nodepool": "a"}), []),
        (MANY, False, [], []),
    ],
)
def test_action_for_a_job_larger_than_all_nodes_depends_on_autoscaling(
    changes: Json, autoscaled: bool | None, objects: list[Json], ceiling: list[str]
) -> None:
    result = violations(RULE, changes, settings={"autoscaled": autoscaled}, view=Snapshot(objects))
    assert [each.ceiling for each in result] == ceiling


@pytest.mark.parametrize("view", [NothingKnown(), Snapshot([])])
def test_unknown_nodes_cause_no_rejection(view: ClusterView) -> None:
    assert violations(RULE, gpus(1000), settings={"autoscaled": False}, view=view) == []


class TestSuggestedSize:
    """The suggested size satisfies every rule and agrees with the message of the rule `slots`."""

    @staticmethod
    def messages(changes: Json, policy: str = "", autoscaled: str = "null") -> list[str]:
        text = f"rules: {{accelerator-available: {{autoscaled: {autoscaled}}}{policy}}}"
        decision = decide(changed(changes), text, view=CLUSTER)
        rules = {RULE, "slots", "worker-count", "gpus", "job-size"}
        found = [*decision.denied, *decision.warned]
        return [f"{one.violation.message}. {one.violation.fix}" for one in found if one.rule in rules]

    @pytest.mark.parametrize(
        ("policy", "fix"),
        [
            ("", "no node has 16 nvidia.com/gpu. Use 8 workers with 8."),
            (", gpus: {max: 16, min: 5}", "no node has 16 nvidia.com/gpu. Use 8 workers with 8."),
            (", gpus: {max: 16, min: 9}", ASK),
            (", worker-count: {max: 7}", ASK),
            (", worker-count: {max: 7, action: warn}", "no node has 16 nvidia.com/gpu. Use 8 workers with 8."),
        ],
    )
    def test_suggested_size_satisfies_all_rules(self, policy: str, fix: str) -> None:
        changes = {**gpus(16), SLOTS: 8, COMMAND: ["mpirun", "-np", "32", "x"]}
        assert self.messages(changes, policy) == [fix]

    @pytest.mark.parametrize("autoscaled", ["null", "false"])
    @pytest.mark.parametrize(
        ("slots", "ranks", "first", "then"),
        [
            (8, "64", "Use 8 workers with 8.", []),
            (16, "64", "Use 8 workers with 8, slots too.", []),
            (4, "x", "Use 8 workers with 8.", [f"4 slots but 16 GPUs per worker. {UNREAD}"]),
            (8, "32", "Use 8 workers with 8.", []),  # 32 ranks fit the suggested 8 workers
            (8, "72", "Use 8 workers with 8.", [f"mpirun -np 72 refuses to start: 64 slots with 8 workers. {RANKS}"]),
        ],
    )
    def test_message_of_the_rule_slots_assumes_the_suggested_size(
        self, slots: int, ranks: str, first: str, then: list[str], autoscaled: str
    ) -> None:
        changes = {**gpus(16), SLOTS: slots, COMMAND: ["mpirun", "-np", ranks, "x"]}
        reported = self.messages(changes, ", slots: {max: 16}", autoscaled)
        assert reported == [f"no node has 16 nvidia.com/gpu. {first}", *then]

    def test_suggested_workers_fit_on_the_nodes(self) -> None:
        (result,) = violations(RULE, {**gpus(16), "Worker.replicas": 5}, view=CLUSTER)
        assert f"{result.message}. {result.fix}" == ASK
        (result,) = violations(RULE, {**gpus(16), "Worker.replicas": 5}, view=BY_KARPENTER)
        assert result.fix == "Use 10 workers with 8."

    def test_job_of_the_suggested_size_is_accepted(self) -> None:
        changes = {**gpus(8), "Worker.replicas": 8, SLOTS: 8, COMMAND: ["mpirun", "-np", "64", "x"]}
        assert self.messages(changes, ", slots: {max: 16}") == []

    def test_launcher_that_is_a_worker_is_reported_too(self) -> None:
        launcher = {"Launcher.template.spec.containers.0.resources.limits": {"nvidia.com/gpu": 16}}
        changes = {**gpus(16), **launcher, "spec.runLauncherAsWorker": True, SLOTS: 8, COMMAND: ["mpirun", "x"]}
        assert {line.partition(". ")[2] for line in self.messages(changes)} == {
            f"Request 8 nvidia.com/gpu or less for {pod}, overhead and sidecars included."
            for pod in ("the launcher", "each worker")
        }


def test_warning_names_the_gpu_product_that_nodes_have() -> None:
    (result,) = violations(RULE, selected(**{PRODUCT: "NVIDIA-A100-SXM4-80GB"}), view=CLUSTER)
    assert f'no node has "NVIDIA-A100-SXM4-80GB", but {GPU}' in Finding(RULE, result).warning


def test_warning_contains_the_longest_fix() -> None:
    (result,) = violations(RULE, {**gpus(16), SLOTS: 16, "Worker.replicas": 40}, view=BY_KARPENTER)
    assert result.fix == "Use 80 workers with 8, slots too."
    warning = Finding(RULE, result).warning
    assert result.fix in warning
    assert len(warning) <= MAX_WARNING_CHARACTERS


def test_resource_of_a_device_class_is_accepted() -> None:
    behind = device_class("gpu.nvidia.com", "example.com/gpu")
    for name in ("example.com/gpu", "deviceclass.resource.kubernetes.io/gpu.nvidia.com"):
        changes = {"Worker.template.spec.containers.0.resources": {"limits": {name: 2}}}
        assert violations("accelerator-available", changes, view=Snapshot([*gpu_nodes(1), behind])) == []
    changes = {"Worker.template.spec.containers.0.resources": {"limits": {"example.com/gpu": 2}}}
    assert len(violations("accelerator-available", changes, view=Snapshot(gpu_nodes(1)))) == 1


def test_setting_ignored_resources_rejects_a_name_without_a_domain() -> None:
    with pytest.raises(ValidationError, match=r'"gpu" is not a resource name such as nvidia\.com/gpu'):
        REGISTRY[RULE].settings.model_validate({"ignoredResources": ["gpu"]})


OWN = {"training.kubeflow.org/job-name": "train"}
WORKERS_OF_JOB = OWN | {"training.kubeflow.org/job-role": "worker"}
HOST = "kubernetes.io/hostname"
LAUNCHER = "spec.mpiReplicaSpecs[Launcher].template.spec"


def pods_by(kind: str, labels: Json, key: str = HOST, **term: Any) -> Json:
    terms = [{"labelSelector": {"matchLabels": labels}, "topologyKey": key, **term}]
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


APART = pods_by("podAntiAffinity", OWN)


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        (
            {f"{SPEC}.affinity": APART, "Launcher.template.spec.affinity": pods_by("podAffinity", WORKERS_OF_JOB)},
            [f"{LAUNCHER}.affinity.podAffinity: requires the {HOST} that a podAntiAffinity forbids"],
        ),
        (
            {f"{SPEC}.affinity": pods_by("podAffinity", WORKERS_OF_JOB) | APART},
            [f"{POD}.affinity.podAffinity: requires the {HOST} that a podAntiAffinity forbids"],
        ),
        (
            {f"{SPEC}.affinity": APART, f"{SPEC}.nodeSelector": {HOST: "n1"}},
            [f"{POD}.affinity.podAntiAffinity: allows one worker for each {HOST}, and nodeSelector allows one {HOST}"],
        ),
        (
            {f"{SPEC}.affinity": pods_by("podAffinity", {"app": "x"}), "metadata.labels": {"app": "x"}},
            [f"{POD}.affinity.podAffinity: selects no pod of the job, but a label of the job itself"],
        ),
        ({f"{SPEC}.affinity": APART}, []),
        ({f"{SPEC}.affinity": APART, f"{SPEC}.nodeSelector": {HOST: "n1"}, "Worker.replicas": 1}, []),
        ({f"{SPEC}.affinity": pods_by("podAffinity", OWN) | APART, "Worker.replicas": 1}, []),
        (
            {
                f"{SPEC}.affinity": pods_by("podAffinity", OWN, matchLabelKeys=["x"])
                | pods_by("podAntiAffinity", OWN, mismatchLabelKeys=["x"])
            },
            [],
        ),
        ({f"{SPEC}.affinity": APART, f"{SPEC}.nodeSelector": {ZONE: "a"}}, []),
        ({f"{SPEC}.affinity": pods_by("podAffinity", WORKERS_OF_JOB, ZONE) | APART}, []),
        ({f"{SPEC}.affinity": pods_by("podAffinity", {"app": "of another job"})}, []),
        (
            {
                f"{SPEC}.affinity": pods_by("podAntiAffinity", OWN, namespaceSelector={}),
                f"{SPEC}.nodeSelector": {HOST: "n1"},
            },
            [],
        ),
    ],
)
def test_affinity_that_no_cluster_satisfies_is_reported(changes: Json, faults: list[str]) -> None:
    assert as_texts(violations(RULE, changes)) == [f"(advice) {fault}" for fault in faults]
