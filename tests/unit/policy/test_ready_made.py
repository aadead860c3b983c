"""Each policy in manifests/policies can be loaded, and all can be combined.

The files in manifests/policies/tests and manifests/policies/published/tests test most effects of the policies.
tests/unit/cli/policy/test_suite.py runs these files. The tests below are for the other effects.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs import changed, request
from tests.support.networks import network
from tests.support.nodes import node
from tests.support.paths import DOCS, EXAMPLES, MANIFESTS
from tests.support.rule_checks import decide
from tests.support.strategies import COMPLETE
from webhook.admission import pipelines
from webhook.api import yaml
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import UNKNOWN, Answer, NothingKnown
from webhook.policy import document, layers
from webhook.policy.in_force import Policy, PolicySet, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import KEY, LABEL

FOLDER = MANIFESTS / "policies"
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")
PUBLISHED = sorted((FOLDER / "published").glob("*.yaml"))
"""Well-known policies of Kyverno and Gatekeeper, rewritten for MPIJobs."""
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


def test_every_file_is_in_the_kustomization() -> None:
    assert [path.stem for path in FILES] == NAMES
    kustomization = (FOLDER / "kustomization.yaml").read_text(encoding="utf-8")
    listed = [line.rpartition("- ")[2] for line in kustomization.splitlines() if line.endswith(".yaml")]
    assert sorted(listed) == [f"{name}.yaml" for name in NAMES]


@pytest.mark.parametrize("path", [*FILES, *PUBLISHED], ids=lambda path: path.stem)
def test_file_contains_config_maps_with_policies(path: Path) -> None:
    for config_map in config_maps(path):
        assert (config_map["apiVersion"], config_map["kind"]) == ("v1", "ConfigMap")
        assert re.fullmatch(rf"mpijob-policy-{path.stem}(-\w+)?", config_map["metadata"]["name"])
        assert config_map["metadata"]["labels"] == {LABEL: "true"}
        assert list(config_map["data"]) == [KEY]
        assert "namespace" not in config_map["metadata"], "the kustomization sets the namespace"
    assert path.read_text(encoding="utf-8").startswith("# "), "a comment says what the policy is for"


def test_documentation_mentions_each_published_policy() -> None:
    page = (DOCS / "policies.md").read_text(encoding="utf-8")
    assert [path.stem for path in PUBLISHED if f"`{path.stem}`" not in page] == []


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


def test_base_tier_allows_gangs_and_a_launcher_with_ranks() -> None:
    changes = {"spec.runPolicy.schedulingPolicy": {"minAvailable": 5}, "spec.runLauncherAsWorker": True}
    assert decide(changed(changes), policy("tier-base")).denied == []


MARKS = (
    "compliance.openshift.io/hipaa",
    "compliance.openshift.io/data-classification",
    "audit.openshift.io/log-to-siem",
)
MARKED = {"metadata.annotations": dict(zip(MARKS, ("true", "PHI", "true"), strict=True))}
NODES = {f"{role}.template.spec.nodeSelector": {"compliance": "hipaa"} for role in ("Launcher", "Worker")}


def test_policy_hipaa_allows_volumes_of_the_csi_driver_for_secrets() -> None:
    keys = [{"name": "keys", "csi": {"driver": "secrets-store.csi.k8s.io"}}]
    assert decide(changed({**MARKED, **NODES, "Worker.template.spec.volumes": keys}), policy("hipaa")).denied == []


TCP_INTERFACES = ("OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include")
FABRIC = Snapshot(
    [
        *(node(name, **{"vpc.amazonaws.com/efa": 32, "rdma/rdma_shared_device_a": 63, "openshift.io/mlx_vf": 16,
                     "nvidia.com/gpu": 8, "hugepages-2Mi": "42242Mi", "cpu": 192, "memory": "2Ti"}) for name in "ab"),
        network("rail-0", "openshift.io/mlx_vf"),
        network("rail-1", "openshift.io/mlx_vf"),
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("rdma-sriov", {"NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_SOCKET_IFNAME", *TCP_INTERFACES}),
        ("rdma-efa", {"FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "NCCL_SOCKET_IFNAME"}),
        ("rdma-infiniband", {"NCCL_IB_HCA", "OMPI_MCA_pml"}),
    ],
)
def test_rdma_example_gets_variables_and_no_warnings(name: str, variables: set[str]) -> None:
    (example,) = yaml.load_all((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    ready = policy(name)
    decision = pipelines.mutate(request(example), policy=ready, view=FABRIC)
    assert [note for note in decision.notes if "no RDMA" in note or "would not reach" in note] == []
    patched: Any = decision.document
    (launcher,) = patched["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert variables <= {variable["name"] for variable in launcher["env"]}
    validated = decide(patched, ready, view=FABRIC)
    assert (validated.denied, validated.warned) == ([], [])


BROKEN = {"Worker.replicas": 1000, "Launcher.replicas": 7, "Worker.template.spec.priorityClassName": "high", **MARKED}


class TestAuditOnly:
    @pytest.mark.parametrize(
        "job", [changed(BROKEN), COMPLETE, {"spec": 3}, {}], ids=["broken", "complete", "wrong shape", "empty"]
    )
    @pytest.mark.parametrize(
        "labels", [{}, {**PREMIUM, **RESTRICTED, **HOSPITAL}], ids=["no labels", "labels of all policies"]
    )
    def test_every_job_is_admitted_and_audited(self, job: Any, labels: dict[str, str]) -> None:
        decision = decide(job, policy(*NAMES, labels=labels))
        assert decision.allowed
        assert decision.audited
        assert decision.warnings == []

    def test_nothing_is_injected(self) -> None:
        selected = policy(*NAMES, labels=HOSPITAL)
        assert selected.injections == ()
        assert pipelines.mutate(request(COMPLETE), policy=selected, view=NothingKnown()).patch == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_file_of_config_maps_can_also_be_loaded_as_a_policy_file(path: Path) -> None:
    together = layers.merge(layers.in_order(loaded(path.stem)), policy_model()).document
    assert pipelines.load_policy(path.read_bytes()).document == together
