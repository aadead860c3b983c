"""The rule `network-policy` reports unfiltered traffic. A job's posture decides which NetworkPolicy the job gets."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.kueue_objects import namespace
from tests.support.rule_checks import as_texts, fits_a_warning, violations
from webhook.api.annotations import NETWORK_POLICY
from webhook.cluster.snapshot import Snapshot
from webhook.rules import REGISTRY
from webhook.rules.network_policy import Posture, Settings, posture

ID = "network-policy"
ANNOTATIONS = "metadata.annotations"
WORKER = "Worker.template.spec"
ROLES = ("Launcher", "Worker")
RESTRICTED = {"posture": "restricted"}
RDMA = {f"{WORKER}.containers.0.resources": {"limits": {"rdma/hca_shared_devices_a": 1}}}
DEFAULT_NETWORK = {"Worker.template.metadata": {"annotations": {"v1.multus-cni.io/default-network": "team-a/own"}}}
NETWORKS = {"Worker.template.metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "team-a/ib"}}}


ON_HOST = {f"{WORKER}.hostNetwork": True}
OUTSIDE = "spec.mpiReplicaSpecs[{}].template.spec.hostNetwork: is outside any NetworkPolicy"
UNFILTERED = "(advice) spec.mpiReplicaSpecs[Worker]: its NetworkPolicy does not filter {}"
RDMA_IS, NETWORKS_ARE = (UNFILTERED.format(traffic) for traffic in ("RDMA", "further networks"))


@pytest.mark.parametrize(
    ("settings", "changes", "expected"),
    [
        ({}, {}, []),
        ({}, ON_HOST, []),
        (RESTRICTED, {}, []),
        (RESTRICTED, ON_HOST, [OUTSIDE.format("Worker")]),
        (RESTRICTED, {**ON_HOST, "Launcher.template.spec.hostNetwork": True}, [*map(OUTSIDE.format, ROLES)]),
        (RESTRICTED, RDMA, [RDMA_IS]),
        ({**RESTRICTED, "rdmaDevices": ["acme.com/nic"]}, RDMA, []),
        (RESTRICTED, NETWORKS, [NETWORKS_ARE]),
        ({**RESTRICTED, "choices": ["none"]}, {**ON_HOST, ANNOTATIONS: {NETWORK_POLICY: "none"}}, []),
        (RESTRICTED, {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue", **ON_HOST}, []),
    ],
)
def test_unfiltered_traffic_is_reported(settings: dict[str, Any], changes: dict[str, Any], expected: list[str]) -> None:
    result = violations(ID, changes, settings=settings)
    assert as_texts(result) == expected
    assert all(fits_a_warning(ID, each) for each in result)


@pytest.mark.parametrize(
    ("settings", "requested", "message", "fix"),
    [
        ({}, "isolated", '"isolated" may not be chosen: it is none', "Remove it."),
        (RESTRICTED, "none", '"none" may not be chosen: it is restricted', "Remove it."),
        (
            {"choices": ["isolated", "default"]},
            "open",
            '"open" is not known: it is none',
            "Use default or isolated, or remove it.",
        ),
        ({}, "", '"" is not known: it is none', "Remove it."),
    ],
)  # fmt: skip
def test_posture_that_cannot_be_chosen_is_reported(
    settings: dict[str, Any], requested: str, message: str, fix: str
) -> None:
    (result,) = violations(ID, {ANNOTATIONS: {NETWORK_POLICY: requested}}, settings=settings)
    assert (result.path, result.message, result.fix) == (
        f"metadata.annotations[{NETWORK_POLICY}]",
        f"{NETWORK_POLICY} {message}",
        fix,
    )


@pytest.mark.parametrize(
    ("settings", "requested"),
    [({}, "none"), (RESTRICTED, "restricted"), ({**RESTRICTED, "choices": ["isolated"]}, "isolated")],
)
def test_default_or_allowed_posture_may_be_requested(settings: dict[str, Any], requested: str) -> None:
    assert violations(ID, {ANNOTATIONS: {NETWORK_POLICY: requested}}, settings=settings) == []


def policy(name: str = "closed", selector: Json | None = None, **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "team-a"}
    fields = {"podSelector": selector or {}, **spec}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": fields}


def peers(*sources: Json) -> list[Json]:
    return [{"from": list(sources), "ports": [{"port": 2222}]}]


OTHER_NAMESPACE = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
OWN_NAMESPACE = {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}}
OF_WORKERS = {"matchLabels": {"training.kubeflow.org/job-role": "worker"}}
NAMESPACE = namespace("team-a", team="a")


@pytest.mark.parametrize(
    "objects",
    [
        [policy()],
        [policy(ingress=peers(OTHER_NAMESPACE))],
        [policy(selector=OF_WORKERS)],
        [policy(selector={"matchLabels": {"app": "x"}})],
        [policy("closed"), policy("monitored", ingress=peers(OTHER_NAMESPACE))],
    ],
)
def test_namespace_policy_that_blocks_the_launcher_is_a_warning(objects: list[Json]) -> None:
    changes = {"Worker.template.metadata": {"labels": {"app": "x"}}}
    (result,) = violations(ID, changes, view=Snapshot([NAMESPACE, *objects]))
    path = "(advice) spec.mpiReplicaSpecs[Worker]"
    assert as_texts([result]) == [f"{path}: NetworkPolicy closed blocks the launcher"]
    assert fits_a_warning(ID, result)


@pytest.mark.parametrize(
    ("objects", "changes", "settings"),
    [
        ([policy(ingress=[{}])], {}, {}),
        ([policy(ingress=peers({"podSelector": {}}))], {}, {}),
        ([policy(ingress=peers(OTHER_NAMESPACE, OWN_NAMESPACE))], {}, {}),
        ([policy(ingress=peers({"namespaceSelector": {}}))], {}, {}),
        ([policy(), policy("open", ingress=peers({"podSelector": OF_WORKERS}))], {}, {}),
        ([policy(policyTypes=["Egress"])], {}, {}),
        ([policy(selector={"matchLabels": {"app": "web"}})], {}, {}),
        ([{**policy(), "metadata": {"name": "closed", "namespace": "team-b"}}], {}, {}),
        ([policy()], {f"{WORKER}.hostNetwork": True}, {}),
        ([policy()], {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, {}),
        ([policy()], {}, {"posture": "default"}),  # the job gets its own NetworkPolicy
        ([], {}, {}),
    ],
)
def test_namespace_policies_that_admit_the_launcher_are_accepted(objects: Any, changes: Json, settings: Json) -> None:
    assert violations(ID, changes, settings=settings, view=Snapshot([NAMESPACE, *objects])) == []


def test_unknown_network_policies_cause_no_violation() -> None:
    assert violations(ID, view=Snapshot([policy()])) == []
    assert violations(ID, view=Snapshot([NAMESPACE])) == []


@pytest.mark.parametrize("default", list(Posture))
@pytest.mark.parametrize("requested", [None, "", "nonsense", *Posture])
def test_user_can_choose_only_a_posture_that_the_policy_allows(default: Posture, requested: str | None) -> None:
    assert posture(requested, Settings(posture=default)) is default
    chosen = posture(requested, Settings(posture=default, choices=tuple(Posture)))
    assert chosen == (requested if requested in list(Posture) else default)


@pytest.mark.parametrize(
    "settings",
    [
        {"httpsCidrs": ["10.0.0.1/8"]},
        {"httpsCidrs": ["10.0.0.0/255.0.0.0"]},
        {"httpsCidrs": ["fe80::%1/64"]},
        {"egress": [{"ports": [0]}]},
        {"ingress": [{"namespaces": ["Not_A_Name"]}]},
        {"egress": [{}]},
        {"ingress": [{"cidrs": []}]},
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        REGISTRY[ID].settings.model_validate(settings)


def test_default_dns_ports_stay_if_dns_namespaces_are_set() -> None:
    assert Settings.model_validate({"dns": {"namespaces": ["openshift-dns"]}}).dns.ports == (53, 5353, 8053)
