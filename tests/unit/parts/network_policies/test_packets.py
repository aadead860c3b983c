"""The NetworkPolicies of jobs allow exactly the packets that the postures of the jobs intend.

A posture is a degree of isolation: `none`, `default`, `restricted` or `isolated`. The methods `allows_...` of `Job`
state the intent.

The evaluator of NetworkPolicies is tested with Kubernetes' truth tables in tests/unit/support/test_packets.py. No
test runs a network plugin.
"""

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.jobs import changed
from tests.support.packets import End, Network
from tests.support.rule_checks import defaulted
from webhook.cluster.view import NothingKnown
from webhook.parts.network_policies.job_policy import network_policy
from webhook.rules.network_policy import Posture, Settings

NAMESPACES = ("team-a", "team-b", "monitoring", "kube-system")
LABELS = {name: {"kubernetes.io/metadata.name": name} for name in NAMESPACES}
SETTINGS = Settings.model_validate(
    {
        "egress": [{"cidrs": ["10.20.0.0/16"], "ports": [443, 9000]}, {"namespaces": ["kube-system"], "ports": [9100]}],
        "ingress": [{"namespaces": ["monitoring"], "ports": [9400]}],
    }
)
DNS, HTTPS, API, SSHD = {53, 5353, 8053}, 443, 6443, 22
PORTS = [(port, "TCP") for port in (22, 53, 222, 443, 1023, 1024, 2222, 5353, 6443, 8080, 9000, 9100, 9400, 65535)]
PORTS += [(53, "UDP"), (8053, "UDP"), (443, "UDP"), (40000, "UDP"), (22, "SCTP")]
OUTSIDE = (
    End("192.0.2.10", "API server"),
    End("10.20.0.5", "object store"),
    End("203.0.113.7", "internet"),
    End("169.254.20.10", "DNS of the node"),
)
OTHER_PODS = tuple(
    End(f"10.1.0.{number}", name, namespace, {"app": name})
    for number, (namespace, name) in enumerate(
        [("team-a", "notebook"), ("team-b", "notebook"), ("monitoring", "prometheus"), ("kube-system", "dns")]
    )
)


@dataclass(frozen=True)
class Job:
    namespace: str
    name: str
    posture: Posture
    workers: int = 2
    launcher_computes: bool = False
    token: bool = False
    ssh: tuple[str, ...] = ()
    """The worker's command: sshd with options. If this is empty, the command of the image runs."""
    number: int = field(default=0, compare=False)

    @property
    def document(self) -> dict[str, Any]:
        template = "Worker.template.spec"
        changes: dict[str, Any] = {
            "metadata": {"name": self.name, "namespace": self.namespace, "uid": "u"},
            "Worker.replicas": self.workers,
            "spec.runLauncherAsWorker": self.launcher_computes,
            f"{template}.automountServiceAccountToken": self.token,
            "Launcher.template.spec.automountServiceAccountToken": False,
        }
        if self.ssh:
            changes[f"{template}.containers.0.command"] = list(self.ssh)
        return changed(changes)

    @property
    def policies(self) -> list[dict[str, Any]]:
        if self.posture is Posture.NONE:
            return []
        return [network_policy(defaulted(self.document), self.posture, SETTINGS, NothingKnown())]

    @property
    def pods(self) -> list[End]:
        labels = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": self.name}
        pods = []
        for index in range(self.workers + 1):
            role = {"training.kubeflow.org/job-role": "worker" if index else "launcher"}
            address = f"10.{100 + self.number}.{index // 250}.{index % 250}"
            pods.append(End(address, f"{self.name}-{index}", self.namespace, labels | role))
        return pods

    def allows_between_its_pods(self, port: int, protocol: str) -> bool:
        if self.posture is not Posture.ISOLATED:
            return True
        ssh_ports = {SSHD, *(int(word) for word in self.ssh if word.isdigit())}
        return protocol == "TCP" and (port >= 1024 or port in ssh_ports or "-f" in self.ssh)

    def allows_to_others(self, target: End, port: int, protocol: str) -> bool:
        if self.posture in {Posture.NONE, Posture.DEFAULT}:
            return True
        if port in DNS and protocol in {"UDP", "TCP"}:
            return True
        if protocol != "TCP":
            return False
        if target.name == "object store" and port in {443, 9000}:
            return True
        if target.namespace == "kube-system" and port == 9100:
            return True
        return self.posture is Posture.RESTRICTED and (port == HTTPS or (self.token and port == API))

    def allows_from_others(self, source: End, port: int, protocol: str) -> bool:
        scraper = source.namespace == "monitoring" and (port, protocol) == (9400, "TCP")
        return self.posture is Posture.NONE or scraper


JOBS = st.builds(
    Job,
    st.sampled_from(("team-a", "team-b")),
    st.sampled_from(("train", "train-2", "t")),
    st.sampled_from(list(Posture)),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from(
        [
            (),
            ("/usr/sbin/sshd", "-De"),
            ("/usr/sbin/sshd", "-De", "-p", "2222"),
            ("sshd", "-D", "-p", "222"),
            ("/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"),
        ]
    ),
)


def deviations(jobs: list[Job]) -> list[str]:
    """The packets that are allowed or blocked contrary to the intent."""
    jobs = [Job(**{**vars(job), "number": number}) for number, job in enumerate(jobs)]
    network = Network(LABELS, [policy for job in jobs for policy in job.policies])
    owners = {pod.address: job for job in jobs for pod in job.pods}
    ends = [*(pod for job in jobs for pod in job.pods), *OTHER_PODS, *OUTSIDE]
    wrong = []
    for source, target in product(ends, ends):
        sender, receiver = owners.get(source.address), owners.get(target.address)
        if source == target or (sender is None and receiver is None):
            continue
        for port, protocol in PORTS:
            if sender is receiver and sender is not None:
                expected = sender.allows_between_its_pods(port, protocol)
            else:
                egress = sender is None or sender.allows_to_others(target, port, protocol)
                expected = egress and (receiver is None or receiver.allows_from_others(source, port, protocol))
            if network.allows(source, target, port, protocol) is not expected:
                path = f"{source.namespace}/{source.name} -> {target.namespace}/{target.name}"
                wrong.append(f"{path} {protocol} {port}: {'closed' if expected else 'open'}")
    return wrong


@settings(max_examples=60, deadline=None)
@given(st.lists(JOBS, min_size=1, max_size=4, unique_by=lambda job: (job.namespace, job.name)))
def test_packets_between_any_two_pods_are_allowed_as_intended(jobs: list[Job]) -> None:
    assert deviations(jobs) == []


@pytest.mark.parametrize("posture", list(Posture))
def test_all_pods_of_a_job_with_more_than_64_workers_may_connect_to_each_other(posture: Posture) -> None:
    job = Job("team-a", "large", posture, workers=70)
    network = Network(LABELS, job.policies)
    for source, target in product(job.pods, job.pods):
        for port in (22, 2222, 1024, 45678, 65535):
            assert network.allows(source, target, port)


def test_network_policy_for_the_posture_none_selects_no_pod() -> None:
    job = Job("team-a", "train", Posture.DEFAULT)
    network = Network(LABELS, [network_policy(defaulted(job.document), Posture.NONE, SETTINGS, NothingKnown())])
    for source, target in product([*job.pods, *OTHER_PODS, *OUTSIDE], job.pods):
        assert network.allows(source, target, 22)
