"""The fields of a job's NetworkPolicy for each posture, which is a degree of isolation.

test_packets.py tests which packets the NetworkPolicy allows.
"""

from typing import Any

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.rule_checks import defaulted
from tests.support.service_accounts import service_account
from webhook.api.mpijob import MPIJob
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.parts.network_policies.job_policy import NETWORK_POLICY_KIND, is_filtered, network_policy, spec
from webhook.rules.network_policy import Posture, Settings

record = NETWORK_POLICY_KIND.record
LABELS = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "train"}
PODS = {"matchLabels": LABELS}
SAME_JOB = [{"podSelector": PODS}]
ALL = {"protocol": "TCP", "port": 1, "endPort": 65535}
HIGH = {"protocol": "TCP", "port": 1024, "endPort": 65535}
WORKER = "Worker.template.spec"
NO_TOKEN = {f"{role}.template.spec.automountServiceAccountToken": False for role in ("Launcher", "Worker")}
DNS = {"ports": [{"protocol": protocol, "port": port} for port in (53, 5353, 8053) for protocol in ("UDP", "TCP")]}


def job(**changes: Any) -> MPIJob:
    return defaulted(changed({"metadata.uid": "u-1", **NO_TOKEN, **changes}))


def tcp(*ports: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def test_network_policy_is_owned_by_the_job_and_labelled_with_the_posture() -> None:
    made = network_policy(job(), Posture.DEFAULT, Settings(), NothingKnown())
    assert made["metadata"] == {
        "name": "mpijob-train",
        "namespace": "team-a",
        "labels": {"training.openshift.io/network-policy": "default", "app.kubernetes.io/managed-by": "mpijob-webhook"},
        "ownerReferences": [
            {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train", "uid": "u-1", "controller": True}
        ],
    }
    assert (made["apiVersion"], made["kind"]) == ("networking.k8s.io/v1", "NetworkPolicy")
    assert record(made).owner == "u-1"


BOTH = ["Ingress", "Egress"]
SSH = [*tcp(22), HIGH]


@pytest.mark.parametrize(
    ("posture", "types", "ingress", "egress"),
    [
        (Posture.DEFAULT, ["Ingress"], {"from": SAME_JOB}, []),
        (Posture.RESTRICTED, BOTH, {"from": SAME_JOB}, [{"to": SAME_JOB}, DNS, {"ports": tcp(443)}]),
        (Posture.ISOLATED, BOTH, {"from": SAME_JOB, "ports": SSH}, [{"to": SAME_JOB, "ports": SSH}, DNS]),
    ],
)
def test_posture_decides_policy_types_ingress_and_egress(
    posture: Posture, types: list[str], ingress: Any, egress: list[Any]
) -> None:
    assert spec(job(), posture, Settings(), NothingKnown()) == {
        "podSelector": PODS,
        "policyTypes": types,
        "ingress": [ingress],
        "egress": egress,
    }


def test_peers_from_the_settings_are_added() -> None:
    settings = Settings.model_validate(
        {
            "httpsCidrs": ["10.0.0.0/8"],
            "dns": {"cidrs": ["169.254.20.10/32"], "namespaces": ["kube-system"], "ports": [53]},
            "egress": [{"cidrs": ["10.20.0.0/16", "fd00::/8"], "ports": [443, 9000]}],
            "ingress": [{"namespaces": ["monitoring", "istio-system"]}, {"ports": [6006]}],
        }
    )
    made = spec(job(), Posture.RESTRICTED, settings, NothingKnown())
    among = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["kube-system"]}
    assert made["egress"][1:] == [
        {
            "to": [
                {"ipBlock": {"cidr": "169.254.20.10/32"}},
                {"namespaceSelector": {"matchExpressions": [among]}},
            ],
            "ports": [{"protocol": "UDP", "port": 53}, *tcp(53)],
        },
        {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": tcp(443)},
        {"to": [{"ipBlock": {"cidr": "10.20.0.0/16"}}, {"ipBlock": {"cidr": "fd00::/8"}}], "ports": tcp(443, 9000)},
    ]
    namespaces = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["monitoring", "istio-system"]}
    assert made["ingress"][1:] == [
        {"from": [{"namespaceSelector": {"matchExpressions": [namespaces]}}]},
        {"ports": tcp(6006)},
    ]


PROJECTED = [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({}, False),
        ({f"{WORKER}.automountServiceAccountToken": True}, True),
        ({f"{WORKER}.automountServiceAccountToken": REMOVE}, True),
        ({"Launcher.template.spec.automountServiceAccountToken": REMOVE}, True),
        ({f"{WORKER}.volumes": PROJECTED}, True),
        ({f"{WORKER}.volumes": [{"name": "c", "projected": {"sources": [{"configMap": {"name": "c"}}]}}]}, False),
    ],
)
def test_egress_to_the_api_server_is_allowed_if_a_pod_has_a_token_and_the_posture_is_restricted(
    changes: dict[str, Any], allowed: bool
) -> None:
    for posture, expected in ((Posture.RESTRICTED, allowed), (Posture.ISOLATED, False)):
        made = spec(job(**changes), posture, Settings(), NothingKnown())
        assert ({"ports": tcp(443, 6443)} in made["egress"]) is expected


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({}, False),
        ({f"{WORKER}.automountServiceAccountToken": REMOVE}, False),
        ({f"{WORKER}.automountServiceAccountToken": REMOVE, f"{WORKER}.serviceAccountName": "talks"}, True),
        ({f"{WORKER}.automountServiceAccountToken": True}, True),
    ],
)
def test_egress_to_the_api_server_is_not_allowed_if_the_service_account_gives_no_token(
    changes: dict[str, Any], allowed: bool
) -> None:
    view = Snapshot([service_account("default", token=False), service_account("talks")])
    made = spec(job(**changes), Posture.RESTRICTED, Settings(), view)
    assert ({"ports": tcp(443, 6443)} in made["egress"]) is allowed


def test_egress_has_no_rule_for_the_api_server_if_the_setting_api_ports_is_empty() -> None:
    """A rule without peers and ports would allow everything."""
    with_token = job(**{f"{WORKER}.automountServiceAccountToken": True})
    made = spec(with_token, Posture.RESTRICTED, Settings.model_validate({"apiPorts": []}), NothingKnown())
    assert made["egress"] == [{"to": SAME_JOB}, DNS, {"ports": tcp(443)}]


@pytest.mark.parametrize(
    ("command", "ports"),
    [
        (["/usr/sbin/sshd", "-De"], [*tcp(22), HIGH]),
        (["/usr/sbin/sshd", "-De", "-p", "2222"], [*tcp(22), HIGH]),
        (["/usr/sbin/sshd", "-De", "-p", "222"], [*tcp(22, 222), HIGH]),
        (["/bin/sh", "-c", "exec /usr/sbin/sshd -D -o Port=1000"], [*tcp(22, 1000), HIGH]),
        (["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"], [ALL]),
        (["/entrypoint.sh"], [ALL]),
    ],
)  # fmt: skip
def test_isolated_posture_allows_the_port_of_sshd(command: list[str], ports: list[Any]) -> None:
    made = spec(job(**{f"{WORKER}.containers.0.command": command}), Posture.ISOLATED, Settings(), NothingKnown())
    assert made["ingress"] == [{"from": SAME_JOB, "ports": ports}]


@pytest.mark.parametrize(
    ("changes", "filtered"),
    [
        ({}, True),
        ({f"{WORKER}.hostNetwork": True}, False),
        ({"Launcher.template.spec.hostNetwork": True}, False),
        ({"spec.runPolicy.managedBy": "kubeflow.org/mpi-operator"}, True),
        ({"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, False),
        ({"metadata.name": "a" * 63}, True),
        ({"metadata.name": "a" * 64}, False),
    ],
)
def test_job_has_a_network_policy_if_its_pods_can_be_selected(changes: dict[str, Any], filtered: bool) -> None:
    assert is_filtered(job(**changes)) is filtered


@pytest.mark.parametrize("posture", list(Posture))
def test_stored_network_policy_is_recognised(posture: Posture) -> None:
    """The API server leaves out empty lists, and may return policyTypes in a different order."""
    made = network_policy(job(), posture, Settings(), NothingKnown())
    stored = {name: value for name, value in made["spec"].items() if value}
    stored["policyTypes"] = stored["policyTypes"][::-1]
    assert record({**made, "spec": stored}) == record(made)
    for name in stored:
        different = {**stored, name: ["different"] if name != "podSelector" else {}}
        assert record({**made, "spec": different}) != record(made)
