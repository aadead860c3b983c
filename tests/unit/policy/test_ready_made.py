"""The policies in manifests/policies: each can be loaded, all can be combined, and each has the documented effect."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs import changed, request
from tests.support.networks import network
from tests.support.nodes import node
from tests.support.paths import EXAMPLES, MANIFESTS
from tests.support.strategies import COMPLETE
from webhook.admission import pipelines
from webhook.admission.pipelines import Decision
from webhook.api import yaml
from webhook.api.networks import NETWORKS
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import UNKNOWN, Answer, NothingKnown
from webhook.policy import document, layers
from webhook.policy.in_force import Policy, PolicySet, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import KEY, LABEL

FOLDER = MANIFESTS / "policies"
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")
NAMES = [
    "audit-only", "education", "hipaa", "hpc-cpu", "kueue", "openshift-ai", "platform-defaults", "rdma-efa",
    "rdma-infiniband", "rdma-sriov", "restricted-openshift", "tier-base", "tier-premium", "volcano",
]  # fmt: skip


def config_maps(path: Path) -> list[dict[str, Any]]:
    return yaml.load_all(path.read_text(encoding="utf-8"))


def loaded(*names: str) -> list[Layer]:
    """The layers of these files, read from their ConfigMaps like in the service."""
    return [
        Layer(config_map["metadata"]["name"], document.load(config_map["data"][KEY], policy_model()))
        for name in names
        for config_map in config_maps(FOLDER / f"{name}.yaml")
    ]


def policy(*names: str, labels: Mapping[str, str] | None = None) -> Policy:
    """The policy of a namespace with these labels."""
    return PolicySet(loaded(*names)).for_namespace(Namespace("team-a", dict(labels or {})))


PREMIUM = {"training.openshift.io/tier": "premium"}
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
HOSPITAL = {"compliance.openshift.io/hipaa": "true"}


def validate(job: Any, policy: Policy, *claims: dict[str, Any]) -> Decision:
    return pipelines.validate(
        request(job), policy=policy, view=Snapshot(claims) if claims else NothingKnown(), today=date.min
    )


def mutate(job: Any, policy: Policy) -> Decision:
    return pipelines.mutate(request(job), policy=policy, view=NothingKnown())


def denied(job: Any, policy: Policy, *claims: dict[str, Any]) -> list[str]:
    """`rule: field` for each violation that rejects the job."""
    return [f"{finding.rule}: {finding.violation.path}" for finding in validate(job, policy, *claims).denied]


def test_every_file_is_in_the_kustomization() -> None:
    assert [path.stem for path in FILES] == NAMES
    kustomization = (FOLDER / "kustomization.yaml").read_text(encoding="utf-8")
    listed = [line.rpartition("- ")[2] for line in kustomization.splitlines() if line.endswith(".yaml")]
    assert sorted(listed) == [f"{name}.yaml" for name in NAMES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_has_policy_config_maps(path: Path) -> None:
    for config_map in config_maps(path):
        assert (config_map["apiVersion"], config_map["kind"]) == ("v1", "ConfigMap")
        assert config_map["metadata"]["name"].startswith(f"mpijob-policy-{path.stem}")
        assert config_map["metadata"]["labels"] == {LABEL: "true"}
        assert list(config_map["data"]) == [KEY]
        assert "namespace" not in config_map["metadata"], "the kustomization sets the namespace"
    assert path.read_text(encoding="utf-8").startswith("# "), "a comment says what the policy is for"


def test_all_policies_can_be_combined() -> None:
    everything = loaded(*NAMES)
    assert len({layer.name for layer in everything}) == len(everything)
    assert layers.ties(everything) == []
    ordered = layers.in_order(everything)
    assert layers.merge(ordered, policy_model()).dropped == ()


@pytest.mark.parametrize("namespace", [UNKNOWN, Namespace("team-a", {})])
def test_platform_defaults_equal_the_built_in_defaults(namespace: Namespace | Answer) -> None:
    defaults = PolicySet(loaded("platform-defaults")).for_namespace(namespace)
    assert defaults.document == policy_model()()
    assert defaults.rules == pipelines.load_policy(None).rules


HIGH = {"Worker.template.spec.priorityClassName": "high"}


class TestTiers:
    @pytest.mark.parametrize(
        ("changes", "base", "premium"),
        [
            ({"Worker.replicas": 8}, [], []),
            ({"Worker.replicas": 9}, ["tier: spec.mpiReplicaSpecs[Worker].replicas"], []),
            ({"Worker.replicas": 100}, ["tier: spec.mpiReplicaSpecs[Worker].replicas"], []),
            (HIGH, ["tier: spec.mpiReplicaSpecs[Worker].template.spec.priorityClassName"], []),
            ({"spec.runPolicy.schedulingPolicy": {"minAvailable": 5}, "spec.runLauncherAsWorker": True}, [], []),
        ],
    )
    def test_limits_of_base_and_premium(self, changes: dict[str, Any], base: list[str], premium: list[str]) -> None:
        job = changed(changes)
        assert denied(job, policy("tier-base", "tier-premium")) == base
        assert denied(job, policy("tier-base", "tier-premium", labels=PREMIUM)) == premium
        assert denied(job, policy("tier-premium")) == []

    def test_platform_limits_also_apply_to_premium(self) -> None:
        rejected = denied(changed({"Worker.replicas": 101}), policy("tier-base", "tier-premium", labels=PREMIUM))
        assert rejected == ["worker-count: spec.mpiReplicaSpecs[Worker].replicas"]


IMAGE = "Worker.template.spec.containers.0.image"
OURS = "image-registry.openshift-image-registry.svc:5000/team-a/train:1"
OWN_IMAGES = {IMAGE: OURS, "Launcher.template.spec.containers.0.image": OURS}


@pytest.mark.parametrize(
    ("changes", "images"),
    [
        (OWN_IMAGES, []),
        ({**OWN_IMAGES, IMAGE: "registry.redhat.io/rhoai/train:1"}, []),
        ({**OWN_IMAGES, IMAGE: "docker.io/library/train:1"}, ["image"]),
        ({**OWN_IMAGES, IMAGE: "registry.redhat.io/rhoai/train:latest"}, ["image"]),
    ],
)
def test_restricted_openshift_rejects_images_of_other_registries_and_latest(
    changes: dict[str, Any], images: list[str]
) -> None:
    job = changed(changes)
    expected = [f"images: spec.mpiReplicaSpecs[Worker].template.spec.containers[0].{name}" for name in images]
    assert denied(job, policy("restricted-openshift", labels=RESTRICTED)) == expected
    assert denied(job, policy("restricted-openshift")) == []


MARKS = (
    "compliance.openshift.io/hipaa",
    "compliance.openshift.io/data-classification",
    "audit.openshift.io/log-to-siem",
)
MARKED = {"metadata.annotations": dict(zip(MARKS, ("true", "PHI", "true"), strict=True))}
NODES = {f"{role}.template.spec.nodeSelector": {"compliance": "hipaa"} for role in ("Launcher", "Worker")}
DATA = {
    "Worker.template.spec.volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "mri"}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "keys", "csi": {"driver": "secrets-store.csi.k8s.io"}},
    ]
}
WORKER = "spec.mpiReplicaSpecs[Worker].template.spec"


def claim(storage_class: str) -> dict[str, Any]:
    """A claim with the beta annotation, which old manifests use."""
    annotations = {"volume.beta.kubernetes.io/storage-class": storage_class}
    metadata = {"name": "mri", "namespace": "team-a", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}


ON_THE_NODE = [{"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "emptyDir": {}}]


@pytest.mark.parametrize(
    ("changes", "storage_class", "places"),
    [
        ({**MARKED, **NODES, **DATA}, "encrypted-cephfs", []),
        ({**MARKED, **NODES, **DATA}, "gp2", [f"{WORKER}.volumes[0].persistentVolumeClaim.claimName"]),
        (MARKED, "", [f"{pod}.nodeSelector[compliance]" for pod in (WORKER.replace("Worker", "Launcher"), WORKER)]),
        (
            {**MARKED, **NODES, "Worker.template.spec.volumes": ON_THE_NODE},
            "",
            [f"{WORKER}.volumes[0].hostPath", f"{WORKER}.volumes[1].emptyDir.medium"],
        ),
        (
            {"metadata.labels": {"compliance.openshift.io/hipaa": "true"}, **NODES},
            "",
            [f"metadata.annotations[{name}]" for name in MARKS[1:]],
        ),
        ({"Worker.template.spec.volumes": ON_THE_NODE}, "", []),
    ],
    ids=[
        "good",
        "unencrypted storage",
        "no node selector",
        "volumes on the node",
        "no audit annotations",
        "unmarked job",
    ],
)
def test_hipaa_requirements(changes: dict[str, Any], storage_class: str, places: list[str]) -> None:
    assert denied(changed(changes), policy("hipaa"), claim(storage_class)) == [f"compliance: {each}" for each in places]


def test_hipaa_namespace_requires_annotations_on_every_job_and_injects_the_node_selector() -> None:
    in_hospital = policy("hipaa", labels=HOSPITAL)
    assert denied(changed({**MARKED, **NODES, **DATA}), in_hospital, claim("encrypted-cephfs")) == []
    assert f"compliance: {WORKER}.nodeSelector[compliance]" in denied(changed(), in_hospital)
    assert denied(mutate(changed(MARKED), in_hospital).document, in_hospital) == []
    assert "node-selector" not in mutate(changed(MARKED), policy("hipaa")).authors


FABRIC = Snapshot(
    [
        *(node(name, **{"vpc.amazonaws.com/efa": 32, "rdma/rdma_shared_device_a": 63, "openshift.io/mlx_vf": 16,
                     "nvidia.com/gpu": 8, "hugepages-2Mi": "42242Mi", "cpu": 192, "memory": "2Ti"}) for name in "ab"),
        network("rail-0", "openshift.io/mlx_vf"),
        network("rail-1", "openshift.io/mlx_vf"),
    ]
)  # fmt: skip


class TestRdma:
    @pytest.mark.parametrize(
        ("name", "devices", "variables", "networks"),
        [
            (
                "rdma-sriov",
                {"openshift.io/mlx_vf": "2"},
                ["NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_SOCKET_IFNAME"]
                + [f"OMPI_MCA_{part}_tcp_if_include" for part in ("btl", "oob")],
                "fabric/rail-0@rail0, fabric/rail-1@rail1",
            ),
            (
                "rdma-efa",
                {"vpc.amazonaws.com/efa": "32", "hugepages-2Mi": "5120Mi"},
                ["FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "NCCL_SOCKET_IFNAME"],
                None,
            ),
            ("rdma-infiniband", {"rdma/rdma_shared_device_a": "1"}, ["NCCL_IB_HCA", "OMPI_MCA_pml"], None),
        ],
    )
    def test_example_gets_devices_variables_and_networks(
        self, name: str, devices: dict[str, str], variables: list[str], networks: str | None
    ) -> None:
        (example,) = yaml.load_all((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
        ready = policy(name)
        decision = pipelines.mutate(request(example), policy=ready, view=FABRIC)
        assert [note for note in decision.notes if "no RDMA" in note or "would not reach" in note] == []
        patched: Any = decision.document
        templates = {role: one["template"] for role, one in patched["spec"]["mpiReplicaSpecs"].items()}
        (worker,), (launcher,) = (templates[role]["spec"]["containers"] for role in ("Worker", "Launcher"))
        amounts = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": 8, **devices}
        assert worker["resources"] == {"requests": amounts, "limits": amounts}
        assert set(variables) <= {variable["name"] for variable in launcher["env"]}
        assert templates["Worker"]["metadata"]["annotations"].get(NETWORKS) == networks
        validated = pipelines.validate(request(patched), policy=ready, view=FABRIC, today=date.min)
        assert (validated.denied, validated.warned) == ([], [])

    @pytest.mark.parametrize("name", ["rdma-sriov", "rdma-efa", "rdma-infiniband"])
    def test_job_without_the_annotation_gets_no_rdma(self, name: str) -> None:
        assert "rdma" not in pipelines.mutate(request(COMPLETE), policy=policy(name), view=FABRIC).authors


BROKEN = {"Worker.replicas": 1000, "Launcher.replicas": 7, IMAGE: "A B", **MARKED, **HIGH}


class TestAuditOnly:
    @pytest.mark.parametrize(
        "job", [changed(BROKEN), COMPLETE, {"spec": 3}, {}], ids=["broken", "complete", "wrong shape", "empty"]
    )
    @pytest.mark.parametrize(
        "labels", [{}, {**PREMIUM, **RESTRICTED, **HOSPITAL}], ids=["no labels", "labels of all policies"]
    )
    def test_every_job_is_admitted_and_audited(self, job: Any, labels: dict[str, str]) -> None:
        decision = validate(job, policy(*NAMES, labels=labels))
        assert decision.allowed
        assert decision.audited
        assert decision.warnings == []

    def test_same_job_is_rejected_without_audit_only(self) -> None:
        others = [name for name in NAMES if name != "audit-only"]
        broken = changed(BROKEN)
        labels = {**HOSPITAL, **RESTRICTED}
        rejecting = {finding.rule for finding in validate(broken, policy(*others, labels=labels)).denied}
        assert {"worker-count", "upstream-contract", "images", "tier", "compliance"} <= rejecting
        audited = {finding.rule for finding in validate(broken, policy(*NAMES, labels=labels)).audited}
        assert rejecting <= audited

    def test_nothing_is_injected(self) -> None:
        selected = policy(*NAMES, labels=HOSPITAL)
        assert selected.injections == ()
        assert mutate(COMPLETE, selected).patch == []


def test_hpc_cpu_admits_a_rank_per_core_for_jobs_without_gpus() -> None:
    path = "Worker.template.spec.containers.0.resources.limits"
    on_cores = {"spec.slotsPerWorker": 96, path: {"cpu": "96", "memory": "384Gi"}}
    with_gpus = {"spec.slotsPerWorker": 96, path: {"cpu": "96", "memory": "384Gi", "nvidia.com/gpu": 8}}
    assert denied(changed(on_cores), policy("platform-defaults", "hpc-cpu")) == []
    assert denied(changed(on_cores), policy("platform-defaults")) == ["slots: spec.slotsPerWorker"]
    assert denied(changed(with_gpus), policy("platform-defaults", "hpc-cpu")) == ["slots: spec.slotsPerWorker"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_file_of_config_maps_can_also_be_loaded_as_a_policy_file(path: Path) -> None:
    together = layers.merge(layers.in_order(loaded(path.stem)), policy_model()).document
    assert pipelines.load_policy(path.read_bytes()).document == together
