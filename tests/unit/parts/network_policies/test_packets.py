"""Which packets the NetworkPolicies of jobs let through, for every pair of pods: by the evaluator, against the intent.

The evaluator is held against Kubernetes' own truth tables in tests/unit/support/test_packets.py. That a network plugin
does the same cannot be shown here.
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
from webhook.parts.network_policies.wanted import network_policy
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
    End("203.0.113.7", "somewhere"),
    End("169.254.20.10", "DNS of the node"),
)
BESIDE = tuple(
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
    """sshd and its options, where the job says them."""
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
        """As the operator labels them."""
        both = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": self.name}
        found = []
        for index in range(self.workers + 1):
            role = {"training.kubeflow.org/job-role": "worker" if index else "launcher"}
            address = f"10.{100 + self.number}.{index // 250}.{index % 250}"
            found.append(End(address, f"{self.name}-{index}", self.namespace, both | role))
        return found

    def inside(self, port: int, protocol: str) -> bool:
        """Whether pods of the job are to reach each other so."""
        if self.posture is not Posture.ISOLATED:
            return True
        known = {SSHD, *(int(word) for word in self.ssh if word.isdigit())}
        return protocol == "TCP" and (port >= 1024 or port in known or "-f" in self.ssh)

    def lets_out(self, target: End, port: int, protocol: str) -> bool:
        """Whether its pods are allowed to reach a peer outside of the job."""
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

    def lets_in(self, source: End, port: int, protocol: str) -> bool:
        """Whether a peer outside of the job is allowed to reach its pods."""
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


def unlike_the_intent(jobs: list[Job]) -> list[str]:
    """The packets between pods of these jobs that the NetworkPolicies treat against the intent."""
    jobs = [Job(**{**vars(job), "number": number}) for number, job in enumerate(jobs)]
    network = Network(LABELS, [policy for job in jobs for policy in job.policies])
    owners = {pod.address: job for job in jobs for pod in job.pods}
    ends = [*(pod for job in jobs for pod in job.pods), *BESIDE, *OUTSIDE]
    wrong = []
    for source, target in product(ends, ends):
        ours, theirs = owners.get(source.address), owners.get(target.address)
        if source == target or (ours is None and theirs is None):
            continue
        for port, protocol in PORTS:
            if ours is theirs and ours is not None:
                meant = ours.inside(port, protocol)
            else:
                out = ours is None or ours.lets_out(target, port, protocol)
                meant = out and (theirs is None or theirs.lets_in(source, port, protocol))
            if network.allows(source, target, port, protocol) is not meant:
                way = f"{source.namespace}/{source.name} -> {target.namespace}/{target.name}"
                wrong.append(f"{way} {protocol} {port}: {'closed' if meant else 'open'}")
    return wrong


@settings(max_examples=60, deadline=None)
@given(st.lists(JOBS, min_size=1, max_size=4, unique_by=lambda job: (job.namespace, job.name)))
def test_every_pair_of_pods_of_a_cluster(jobs: list[Job]) -> None:
    assert unlike_the_intent(jobs) == []


@pytest.mark.parametrize("posture", list(Posture))
def test_with_more_than_64_workers_each_reaches_each_by_ssh_and_calls_back(posture: Posture) -> None:
    job = Job("team-a", "large", posture, workers=70)
    network = Network(LABELS, job.policies)
    for source, target in product(job.pods, job.pods):
        for port in (22, 2222, 1024, 45678, 65535):
            assert network.allows(source, target, port)


def test_a_job_without_effect_selects_no_pod() -> None:
    """What is left of a NetworkPolicy after its job's posture became none."""
    job = Job("team-a", "train", Posture.DEFAULT)
    left = network_policy(defaulted(job.document), Posture.NONE, SETTINGS, NothingKnown())
    network = Network(LABELS, [left])
    for source, target in product([*job.pods, *BESIDE, *OUTSIDE], job.pods):
        assert network.allows(source, target, 22)
