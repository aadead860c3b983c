"""network-policy: the posture of a job, and traffic that no NetworkPolicy filters."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.kueue_objects import namespace
from tests.support.rule_checks import fits_a_warning, found, violations
from webhook.api.annotations import NETWORK_POLICY
from webhook.cluster.snapshot import Snapshot
from webhook.rules import REGISTRY
from webhook.rules.network_policy import Posture, Settings, posture

ID = "network-policy"
ASKS = "metadata.annotations"
WORKER = "Worker.template.spec"
PATHS = {role: f"spec.mpiReplicaSpecs[{role}].template" for role in ("Launcher", "Worker")}
RESTRICTED = {"posture": "restricted"}
RDMA = {f"{WORKER}.containers.0.resources": {"limits": {"rdma/hca_shared_devices_a": 1}}}
DEFAULT_NETWORK = {"Worker.template.metadata": {"annotations": {"v1.multus-cni.io/default-network": "team-a/own"}}}
NETWORKS = {"Worker.template.metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "team-a/ib"}}}


@pytest.mark.parametrize(
    ("settings", "changes", "expected"),
    [
        ({}, {}, []),
        ({}, {f"{WORKER}.hostNetwork": True}, []),
        (RESTRICTED, {}, []),
        (
            RESTRICTED,
            {f"{WORKER}.hostNetwork": True},
            [f"{PATHS['Worker']}.spec.hostNetwork: is outside any NetworkPolicy"],
        ),
        (
            RESTRICTED,
            {f"{WORKER}.hostNetwork": True, "Launcher.template.spec.hostNetwork": True},
            [
                f"{PATHS[role]}.spec.hostNetwork: is outside any NetworkPolicy"
                for role in PATHS
            ],
        ),
        (
            RESTRICTED,
            RDMA,
            ["(advice) spec.mpiReplicaSpecs[Worker]: RDMA passes by its NetworkPolicy"],
        ),
        ({**RESTRICTED, "rdmaDevices": ["acme.com/nic"]}, RDMA, []),
        (
            RESTRICTED,
            NETWORKS,
            [
                "(advice) spec.mpiReplicaSpecs[Worker]: further networks pass by its NetworkPolicy"
            ],
        ),
        (
            RESTRICTED,
            DEFAULT_NETWORK,
            [
                "(advice) spec.mpiReplicaSpecs[Worker]: further networks pass by its NetworkPolicy"
            ],
        ),
        (RESTRICTED, {"Worker.template.metadata": {"annotations": {"v1.multus-cni.io/default-network": ""}}}, []),
        ({}, {**RDMA, **NETWORKS}, []),
        ({"choices": ["isolated"]}, {**RDMA, ASKS: {NETWORK_POLICY: "isolated"}}, [
            "(advice) spec.mpiReplicaSpecs[Worker]: RDMA passes by its NetworkPolicy"
        ]),
        (
            {**RESTRICTED, "choices": ["none"]},
            {f"{WORKER}.hostNetwork": True, ASKS: {NETWORK_POLICY: "none"}},
            [],
        ),
        (RESTRICTED, {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue", f"{WORKER}.hostNetwork": True}, []),
    ],
)  # fmt: skip
def test_traffic_that_is_not_filtered(settings: dict[str, Any], changes: dict[str, Any], expected: list[str]) -> None:
    result = violations(ID, changes, settings=settings)
    assert found(result) == expected
    assert all(fits_a_warning(ID, each) for each in result)


@pytest.mark.parametrize(
    ("settings", "asked", "message", "fix"),
    [
        ({}, "isolated", '"isolated" may not be chosen: it is none', "Remove it."),
        (RESTRICTED, "none", '"none" may not be chosen: it is restricted', "Remove it."),
        (
            {"choices": ["isolated", "default"]},
            "open",
            '"open" is not known: it is none',
            "Use default or isolated, or remove it.",
        ),
        ({"choices": ["isolated"]}, "Isolated", '"Isolated" is not known: it is none', "Use isolated, or remove it."),
        ({}, "", '"" is not known: it is none', "Remove it."),
    ],
)  # fmt: skip
def test_a_posture_that_cannot_be_chosen(settings: dict[str, Any], asked: str, message: str, fix: str) -> None:
    (result,) = violations(ID, {ASKS: {NETWORK_POLICY: asked}}, settings=settings)
    assert (result.path, result.message, result.fix) == (
        f"metadata.annotations[{NETWORK_POLICY}]",
        f"{NETWORK_POLICY} {message}",
        fix,
    )


@pytest.mark.parametrize(
    ("settings", "asked"),
    [({}, "none"), (RESTRICTED, "restricted"), ({**RESTRICTED, "choices": ["isolated"]}, "isolated")],
)
def test_default_posture_may_be_requested(settings: dict[str, Any], asked: str) -> None:
    assert violations(ID, {ASKS: {NETWORK_POLICY: asked}}, settings=settings) == []


def policy(name: str = "closed", selector: Json | None = None, **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "team-a"}
    fields = {"podSelector": selector or {}, **spec}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": fields}


def peers(*found: Json) -> list[Json]:
    return [{"from": list(found), "ports": [{"port": 2222}]}]


OTHERS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
OWN = {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}}
OF_WORKERS = {"matchLabels": {"training.kubeflow.org/job-role": "worker"}}
SPACE = namespace("team-a", team="a")


@pytest.mark.parametrize(
    "objects",
    [
        [policy()],
        [policy(policyTypes=["Ingress", "Egress"])],
        [policy(ingress=[])],
        [policy(ingress=peers(OTHERS))],
        [policy(selector=OF_WORKERS)],
        [policy(selector={"matchLabels": {"app": "x"}})],
        [policy("closed"), policy("monitored", ingress=peers(OTHERS))],
    ],
)
def test_a_policy_of_the_namespace_that_lets_nothing_of_it_in(objects: list[Json]) -> None:
    changes = {"Worker.template.metadata": {"labels": {"app": "x"}}}
    (result,) = violations(ID, changes, view=Snapshot([SPACE, *objects]))
    path = "(advice) spec.mpiReplicaSpecs[Worker]"
    assert found([result]) == [f"{path}: NetworkPolicy closed shuts the launcher out"]
    assert fits_a_warning(ID, result)


@pytest.mark.parametrize(
    ("objects", "changes", "settings"),
    [
        ([policy(ingress=[{}])], {}, {}),
        ([policy(ingress=[{"ports": [{"port": 22}]}])], {}, {}),
        ([policy(ingress=peers({"podSelector": {}}))], {}, {}),
        ([policy(ingress=peers(OTHERS, OWN))], {}, {}),
        ([policy(ingress=peers({"ipBlock": {"cidr": "10.0.0.0/8"}}))], {}, {}),
        ([policy(ingress=peers({"namespaceSelector": {}}))], {}, {}),
        ([policy(), policy("open", ingress=peers({"podSelector": OF_WORKERS}))], {}, {}),
        ([policy(policyTypes=["Egress"])], {}, {}),
        ([policy(selector={"matchLabels": {"app": "web"}})], {}, {}),
        ([policy(selector={"matchLabels": {"training.kubeflow.org/job-role": "launcher"}})], {}, {}),
        ([{**policy(), "metadata": {"name": "closed", "namespace": "team-b"}}], {}, {}),
        ([policy()], {f"{WORKER}.hostNetwork": True}, {}),
        ([policy()], {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, {}),
        ([policy()], {}, {"posture": "default"}),  # the job gets one of its own
        ([], {}, {}),
    ],
)
def test_policies_of_the_namespace_that_let_the_launcher_in(objects: Any, changes: Json, settings: Json) -> None:
    assert violations(ID, changes, settings=settings, view=Snapshot([SPACE, *objects])) == []


def test_unknown_network_policies_cause_no_violation() -> None:
    assert violations(ID, view=Snapshot([policy()])) == []
    assert violations(ID, view=Snapshot([SPACE])) == []


@pytest.mark.parametrize("default", list(Posture))
@pytest.mark.parametrize("asked", [None, "", "nonsense", *Posture])
def test_the_posture_is_the_policys_unless_it_lets_users_choose(default: Posture, asked: str | None) -> None:
    assert posture(asked, Settings(posture=default)) is default
    chosen = posture(asked, Settings(posture=default, choices=tuple(Posture)))
    assert chosen == (asked if asked in list(Posture) else default)


@pytest.mark.parametrize(
    "settings",
    [
        {"posture": "open"},
        {"choices": ["open"]},
        {"httpsCidrs": ["10.0.0.1/8"]},
        {"httpsCidrs": ["example.com"]},
        {"httpsCidrs": ["10.20.0.7"]},
        {"httpsCidrs": ["10.0.0.0/255.0.0.0"]},
        {"httpsCidrs": ["10.0.0.0/08"]},
        {"httpsCidrs": ["fe80::%1/64"]},
        {"egress": [{"ports": [0]}]},
        {"egress": [{"ports": [70000]}]},
        {"ingress": [{"namespaces": ["Not_A_Name"]}]},
        {"dns": {"ports": ["dns"]}},
        {"dns": {"ports": []}},
        {"egress": [{}]},
        {"ingress": [{"cidrs": []}]},
    ],
)
def test_settings_that_no_api_server_would_take_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        REGISTRY[ID].settings.model_validate(settings)


def test_where_dns_is_may_be_said_without_its_ports() -> None:
    assert Settings.model_validate({"dns": {"namespaces": ["openshift-dns"]}}).dns.ports == (53, 5353, 8053)
