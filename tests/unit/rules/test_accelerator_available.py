"""Whether any node could hold a pod of the job, and what the user is told where none could."""

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from tests.controlplane.nodes import GPU, gpu_nodes
from tests.support.any_job import Json, any_job
from tests.support.devices import device_class
from tests.support.rule_checks import found, run, violations
from tests.support.strategies import PROPERTY
from webhook.admission.messages import Finding
from webhook.cluster.snapshot import Snapshot
from webhook.rules import REGISTRY

RULE = "accelerator-available"
POD = "spec.mpiReplicaSpecs[Worker].template.spec"
SPEC = "Worker.template.spec"
LIMITS = f"{SPEC}.containers.0.resources.limits"
PRODUCT = "nvidia.com/gpu.product"
TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}


def nodes(**changes: Any) -> list[Json]:
    """Two machines with GPUs and a small one without; `changes` to the spec of the former."""
    with_gpus = [{**node, "spec": changes} for node in gpu_nodes(2)]
    without = gpu_nodes(1, gpus=0, prefix="cpu", cpu=32, memory="128Gi", zone="zone-b")
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
        {LIMITS: {"cpu": "32"}, f"{SPEC}.nodeSelector": {"topology.kubernetes.io/zone": "zone-b"}},
        {LIMITS: {"storage": "1Pi"}},  # the scheduler does not look at it
    ],
)
def test_accepted(changes: Json) -> None:
    assert violations(RULE, changes, view=CLUSTER) == []


def test_one_cause_for_a_machine_that_is_not_there() -> None:
    """What else nodes with the device would have is unknown; what is not on any node either may be misspelt."""
    limits = {"habana.ai/gaudi": 8, "rdma/ib": 1, "cpu": "1k", "memory": "1Pi", "hugepages-2Mi": "95000Mi"}
    result = violations(RULE, {LIMITS: limits}, view=CLUSTER)
    assert [violation.message for violation in result] == ["no node has habana.ai/gaudi", "no node has rdma/ib"]


@pytest.mark.parametrize(
    ("changes", "path", "fault", "fix"),
    [
        (
            gpus(16),
            "containers",
            "16 nvidia.com/gpu, but no node has more than 8",
            "Ask for 8 nvidia.com/gpu or less for each worker, overhead and sidecars included.",
        ),
        (
            {LIMITS: {"memory": "1.2Ti"}},
            "containers",
            "1.2Ti memory, but no node has more than 1Ti",
            "Ask for 1Ti memory or less for each worker, overhead and sidecars included.",
        ),
        (
            {LIMITS: {"nvidia.com/gpus": 1}},
            "containers",
            "no node has nvidia.com/gpus, but nvidia.com/gpu",
            "Use nvidia.com/gpu instead of nvidia.com/gpus.",
        ),
        ({LIMITS: {"vendor.io/zzz": 1}}, "containers", "no node has vendor.io/zzz", "Check its name and the nodes."),
        (
            selected(**{PRODUCT: "H100"}),
            f"nodeSelector[{PRODUCT}]",
            f'no node has "H100", but {GPU}',
            f"Use {GPU}.",
        ),
        (
            selected(**{"topology.kubernetes.io/rack": "a"}),
            "nodeSelector[topology.kubernetes.io/rack]",
            'no node has "a", but rack-0, rack-1',
            "Use one of rack-0, rack-1.",
        ),
        (
            selected(**{"nvidia.com/gpu.products": "a"}),
            "nodeSelector[nvidia.com/gpu.products]",
            "no node has this label",
            f"Use {PRODUCT}.",
        ),
        (
            selected(zzz="a"),
            "nodeSelector[zzz]",
            "no node has this label",
            "Remove it, or label the nodes.",
        ),
        (
            required([condition("topology.kubernetes.io/zone", "In", "zone-c", "zone-d")]),
            "affinity.nodeAffinity",
            "no node has topology.kubernetes.io/zone In zone-c, zone-d",
            "Use zone-a.",
        ),
        (
            required([condition("zzz", "Exists")]),
            "affinity.nodeAffinity",
            "no node has zzz Exists",
            "Remove it, or label the nodes.",
        ),
        (
            required([condition("zzz", "Exists")], [condition("zzz", "Gt", "3")]),
            "affinity.nodeAffinity",
            "no node satisfies one of its 2 terms",
            "Ask for labels that nodes have.",
        ),
        (required([]), "affinity.nodeAffinity", "selects no node, for want of conditions", "Write some, or remove it."),
        # Each is met somewhere, all of them nowhere.
        (
            {**gpus(1), **selected(**{"topology.kubernetes.io/zone": "zone-b"})},
            "nodeSelector[topology.kubernetes.io/zone]",
            'no node that otherwise fits has "zone-b", but zone-a',
            "Use zone-a.",
        ),
        (
            {LIMITS: {"cpu": "64"}, **selected(**{"topology.kubernetes.io/zone": "zone-b"})},
            "nodeSelector[topology.kubernetes.io/zone]",
            'no node that otherwise fits has "zone-b", but zone-a',
            "Use zone-a.",
        ),
        (
            required(
                [condition("topology.kubernetes.io/zone", "In", "zone-b"), condition(PRODUCT, "Exists")],
            ),
            "affinity.nodeAffinity",
            "no node has topology.kubernetes.io/zone In zone-b",
            "Use zone-a.",
        ),
    ],
)  # fmt: skip
def test_nothing_could_hold_a_worker(changes: Json, path: str, fault: str, fix: str) -> None:
    (result,) = violations(RULE, changes, view=CLUSTER)
    assert (result.path, result.message, result.fix) == (f"{POD}.{path}", fault, fix)


def test_every_demand_that_no_node_meets_is_told() -> None:
    changes = {**gpus(16, cpu="500"), **selected(**{PRODUCT: "A100"})}
    assert [one.path for one in violations(RULE, changes, view=CLUSTER)] == [
        f"{POD}.containers",
        f"{POD}.nodeSelector[{PRODUCT}]",
        f"{POD}.containers",
    ]


def test_the_launcher_too() -> None:
    (result,) = violations(RULE, {"Launcher.template.spec.containers.0.resources.limits.cpu": "97"}, view=CLUSTER)
    assert result.path.startswith("spec.mpiReplicaSpecs[Launcher]")
    assert result.fix == "Ask for 96 cpu or less for the launcher, overhead and sidecars included."


class TestTaints:
    TAINTED = Snapshot(nodes(taints=[TAINT]))

    def test_that_keep_the_job_off(self) -> None:
        assert found(violations(RULE, view=self.TAINTED)) == [
            f"{POD}.tolerations: nodes that otherwise fit have the taint nvidia.com/gpu:NoSchedule"
        ]

    @pytest.mark.parametrize(
        ("changes", "settings"),
        [
            ({f"{SPEC}.tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}, {}),
            ({}, {"toleratedTaints": ["nvidia.com/gpu"]}),
            ({"metadata.labels": {"kueue.x-k8s.io/queue-name": "team"}}, {}),  # flavors add tolerations
            ({f"{SPEC}.runtimeClassName": "nvidia"}, {}),  # and so do RuntimeClasses
        ],
    )
    def test_that_are_tolerated_or_may_be(self, changes: Json, settings: Json) -> None:
        assert violations(RULE, changes, settings=settings, view=self.TAINTED) == []

    def test_of_a_node_that_comes_back(self) -> None:
        taints = [{"key": f"node.kubernetes.io/{state}", "effect": "NoSchedule"} for state in ("unschedulable", "x")]
        assert violations(RULE, view=Snapshot(nodes(unschedulable=True, taints=taints))) == []


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert violations(RULE, gpus(1000)) == []
    assert violations(RULE, {**gpus(1000), "spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, view=CLUSTER) == []


def test_resources_that_no_node_shows() -> None:
    changes = {LIMITS: {"vendor.io/card": 1000}}
    assert violations(RULE, changes, settings={"ignoredResources": ["vendor.io/*"]}, view=CLUSTER) == []


def test_where_nodes_are_added_it_is_only_audited() -> None:
    (result,) = violations(RULE, gpus(16), settings={"autoscaled": True}, view=CLUSTER)
    assert result.audit_only


def test_it_only_warns() -> None:
    assert REGISTRY[RULE].settings().action == "warn"


def test_a_warning_says_what_would_fit() -> None:
    (result,) = violations(RULE, selected(**{PRODUCT: "NVIDIA-A100-SXM4-80GB"}), view=CLUSTER)
    assert f'no node has "NVIDIA-A100-SXM4-80GB", but {GPU}' in Finding(RULE, result).warning


@PROPERTY
@given(any_job())
def test_never_raises(job: Json) -> None:
    run(RULE, job, view=CLUSTER)


def test_what_a_device_class_stands_for_is_on_no_node() -> None:
    behind = device_class("gpu.nvidia.com", "example.com/gpu")
    for name in ("example.com/gpu", "deviceclass.resource.kubernetes.io/gpu.nvidia.com"):
        changes = {"Worker.template.spec.containers.0.resources": {"limits": {name: 2}}}
        assert violations("accelerator-available", changes, view=Snapshot([*gpu_nodes(1), behind])) == []
    changes = {"Worker.template.spec.containers.0.resources": {"limits": {"example.com/gpu": 2}}}
    assert len(violations("accelerator-available", changes, view=Snapshot(gpu_nodes(1)))) == 1


def test_resources_have_a_domain() -> None:
    with pytest.raises(ValidationError, match=r'"gpu" is not a resource name such as nvidia\.com/gpu'):
        REGISTRY[RULE].settings.model_validate({"ignoredResources": ["gpu"]})
