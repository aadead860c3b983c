"""The NetworkPolicy of a job.

If a property of the cluster is unknown, the NetworkPolicy allows more rather than less. Its rules have the ports of
pods, not of Services, because egress is checked after a Service's address has been translated. Its rules for DNS and
the API server select no pods, because DNS and the API server may run outside pods. All pods of a job may connect to
each other: with more than 64 hosts, Open MPI starts daemons from worker to worker.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from webhook.api import names, sshd
from webhook.api.annotations import NETWORK_POLICY
from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodTemplate
from webhook.cluster.view import ClusterView
from webhook.controllers.owned_objects import JOB_NAME, OPERATOR_NAME, OwnedKind
from webhook.predict.api_token import gets_token
from webhook.rules.network_policy import Peers, Posture, Settings

LABEL: Final = NETWORK_POLICY
NETWORK_POLICY_KIND: Final = OwnedKind(
    "networking.k8s.io/v1",
    "NetworkPolicy",
    "networkpolicies",
    LABEL,
    foreign="the job is not isolated",
    unordered=("policyTypes",),
)
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
# sshd's default port. mpi-operator's images use 2222, which is always allowed.
SSH: Final = 22
UNPRIVILEGED: Final = 1024
LAST: Final = 65535
HTTPS: Final = 443

Rule = dict[str, Any]


def is_filtered(job: MPIJob) -> bool:
    """Whether the job may have a NetworkPolicy.

    A job has none if it runs in a different cluster, if its name is not a valid label value, or if it has pods in the
    host network: selectors do not match these pods, so the job's other pods would reject their connections.
    """
    on_host = any(replica.template.spec and replica.template.spec.host_network for _, _, replica in job.replicas)
    return job.managed_here and not on_host and names.label_value_problem(job.metadata.name) is None


def network_policy(job: MPIJob, posture: Posture, settings: Settings, view: ClusterView) -> dict[str, Any]:
    key = job.metadata.namespace, job.metadata.name
    return NETWORK_POLICY_KIND.of_job(key, job.metadata.uid, posture.value, spec(job, posture, settings, view))


def spec(job: MPIJob, posture: Posture, settings: Settings, view: ClusterView) -> dict[str, Any]:
    """The spec has empty fields too, so that an apply replaces the whole old spec."""
    pods = {"matchLabels": {OPERATOR_NAME: "mpi-operator", JOB_NAME: job.metadata.name}}
    if posture is Posture.NONE:
        # This spec selects no pod. The webhook has no permission to delete the NetworkPolicy.
        nothing = [{"key": JOB_NAME, "operator": "DoesNotExist"}]
        return {
            "podSelector": {**pods, "matchExpressions": nothing},
            "policyTypes": ["Ingress"],
            "ingress": [],
            "egress": [],
        }
    same_job = [{"podSelector": pods}]
    isolated = posture is Posture.ISOLATED
    ports = {"ports": _mpi_ports(job)} if isolated else {}
    return {
        "podSelector": pods,
        "policyTypes": ["Ingress"] if posture is Posture.DEFAULT else ["Ingress", "Egress"],
        "ingress": [{"from": same_job, **ports}, *_openings("from", settings.ingress)],
        "egress": []
        if posture is Posture.DEFAULT
        else [
            {"to": same_job, **ports},
            _rule("to", _peers(settings.dns), _ports(settings.dns.ports, "UDP", "TCP")),
            *([] if isolated else _https_and_api(job, settings, view)),
            *_openings("to", settings.egress),
        ],
    }


def _mpi_ports(job: MPIJob) -> list[dict[str, Any]]:
    """Allows all ports if sshd's port is unknown."""
    port = sshd.port(job, SSH)
    if port is None:
        return [{"protocol": "TCP", "port": 1, "endPort": LAST}]
    low = sorted({number for number in (SSH, port) if number < UNPRIVILEGED})
    return [*_ports(low, "TCP"), {"protocol": "TCP", "port": UNPRIVILEGED, "endPort": LAST}]


def _https_and_api(job: MPIJob, settings: Settings, view: ClusterView) -> list[Rule]:
    https = [{"ipBlock": {"cidr": cidr}} for cidr in settings.https_cidrs]
    rules = [_rule("to", https, _ports([HTTPS], "TCP"))]
    namespace = job.metadata.namespace
    # Without ports, the rule would allow everything.
    if settings.api_ports and any(_has_token(replica.template, view, namespace) for _, _, replica in job.replicas):
        rules.append(_rule("to", [], _ports(settings.api_ports, "TCP")))
    return rules


def _has_token(template: PodTemplate, view: ClusterView, namespace: str) -> bool:
    pod = template.spec
    if pod is None or gets_token(pod, view, namespace):
        return True
    sources = (source for volume in pod.volumes or () if volume.projected for source in volume.projected.sources or ())
    return any(source.service_account_token is not None for source in sources)


def _openings(direction: str, openings: Iterable[Peers]) -> list[Rule]:
    return [_rule(direction, _peers(opening), _ports(opening.ports, "TCP")) for opening in openings]


def _rule(direction: str, peers: Sequence[Any], ports: Sequence[Any]) -> Rule:
    """A rule without peers applies to all peers. A rule without ports applies to all ports."""
    return {key: items for key, items in ((direction, peers), ("ports", ports)) if items}


def _peers(peers: Peers) -> list[dict[str, Any]]:
    blocks = [{"ipBlock": {"cidr": cidr}} for cidr in peers.cidrs]
    if not peers.namespaces:
        return blocks
    among = {"key": NAMESPACE_NAME, "operator": "In", "values": list(peers.namespaces)}
    return [*blocks, {"namespaceSelector": {"matchExpressions": [among]}}]


def _ports(numbers: Iterable[int], *protocols: str) -> list[dict[str, Any]]:
    return [{"protocol": protocol, "port": number} for number in numbers for protocol in protocols]
