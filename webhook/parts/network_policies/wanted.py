"""The NetworkPolicy of a job: who may reach its pods, and whom they may reach.

If facts of the cluster are unknown, a rule is wide rather than wrong. Egress is judged after a Service's address has
been translated, so rules have the ports of pods. DNS may be a pod, or a process of the node that no selector matches,
and the API server is not a pod. Pods of the job reach each other from every role to every role: beyond 64 hosts Open
MPI's daemons start each other by ssh from worker to worker, and they connect back to the launcher.
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
"""The object's label with its posture."""
NETWORK_POLICY_KIND: Final = OwnedKind(
    "networking.k8s.io/v1",
    "NetworkPolicy",
    "networkpolicies",
    LABEL,
    foreign="the job is not isolated",
    unordered=("policyTypes",),
)
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
# The port of sshd in plain images; 2222, that of upstream's, is one of those that any process may listen on.
SSH: Final = 22
UNPRIVILEGED: Final = 1024
LAST: Final = 65535
HTTPS: Final = 443

Rule = dict[str, Any]


def is_filtered(job: MPIJob) -> bool:
    """Whether a NetworkPolicy may be created for the job's pods.

    A job that another cluster runs has no pods here, and a posture that is not a valid label gets no object. Pods in
    the host network match no selector: the job's other pods would refuse their connections.
    """
    on_host = any(replica.template.spec and replica.template.spec.host_network for _, _, replica in job.replicas())
    return job.managed_here and not on_host and names.label_value_problem(job.metadata.name) is None


def network_policy(job: MPIJob, posture: Posture, settings: Settings, view: ClusterView) -> dict[str, Any]:
    """The object for the API server, owned by the job."""
    key = job.metadata.namespace, job.metadata.name
    return NETWORK_POLICY_KIND.of_job(key, job.metadata.uid, posture.value, spec(job, posture, settings, view))


def spec(job: MPIJob, posture: Posture, settings: Settings, view: ClusterView) -> dict[str, Any]:
    """Every field is present, even if empty, so that an apply replaces all of the old spec."""
    pods = {"matchLabels": {OPERATOR_NAME: "mpi-operator", JOB_NAME: job.metadata.name}}
    if posture is Posture.NONE:
        # For a job that should have none any more: it selects no pod, so it has no effect. Deleting it would need the
        # right to.
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
            *([] if isolated else _beyond(job, settings, view)),
            *_openings("to", settings.egress),
        ],
    }


def _mpi_ports(job: MPIJob) -> list[dict[str, Any]]:
    """The port of sshd and those that any process may listen on; all of them if sshd's port is unknown."""
    port = sshd.port(job, SSH)
    if port is None:
        return [{"protocol": "TCP", "port": 1, "endPort": LAST}]
    low = sorted({number for number in (SSH, port) if number < UNPRIVILEGED})
    return [*_ports(low, "TCP"), {"protocol": "TCP", "port": UNPRIVILEGED, "endPort": LAST}]


def _beyond(job: MPIJob, settings: Settings, view: ClusterView) -> list[Rule]:
    """HTTPS, and the API server for pods with a token for it."""
    https = [{"ipBlock": {"cidr": cidr}} for cidr in settings.https_cidrs]
    found = [_rule("to", https, _ports([HTTPS], "TCP"))]
    # A rule without peers and ports would allow everything.
    space = job.metadata.namespace
    if settings.api_ports and any(_has_token(replica.template, view, space) for _, _, replica in job.replicas()):
        found.append(_rule("to", [], _ports(settings.api_ports, "TCP")))
    return found


def _has_token(template: PodTemplate, view: ClusterView, namespace: str) -> bool:
    """Whether its pods get a token, or mount one of their own."""
    pod = template.spec
    if pod is None or gets_token(pod, view, namespace):
        return True
    sources = (source for volume in pod.volumes or () if volume.projected for source in volume.projected.sources or ())
    return any(source.service_account_token is not None for source in sources)


def _openings(direction: str, openings: Iterable[Peers]) -> list[Rule]:
    return [_rule(direction, _peers(each), _ports(each.ports, "TCP")) for each in openings]


def _rule(direction: str, peers: Sequence[Any], ports: Sequence[Any]) -> Rule:
    """A rule; without peers it applies to all of them, without ports to all ports."""
    return {**({direction: peers} if peers else {}), **({"ports": ports} if ports else {})}


def _peers(peers: Peers) -> list[dict[str, Any]]:
    blocks = [{"ipBlock": {"cidr": cidr}} for cidr in peers.cidrs]
    if not peers.namespaces:
        return blocks
    among = {"key": NAMESPACE_NAME, "operator": "In", "values": list(peers.namespaces)}
    return [*blocks, {"namespaceSelector": {"matchExpressions": [among]}}]


def _ports(numbers: Iterable[int], *protocols: str) -> list[dict[str, Any]]:
    return [{"protocol": protocol, "port": number} for number in numbers for protocol in protocols]
