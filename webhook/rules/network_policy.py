"""Traffic of a job's pods that no NetworkPolicy filters is reported when the job is created.

With `--network-policies` the service makes a NetworkPolicy for every job, `mpijob-<job>`, by the `posture`:

- `none`: no object.
- `default`: pods accept connections from pods of the same job alone.
- `restricted`: and open none but to these, to DNS, to HTTPS (443), and to the API server where they have a token.
- `isolated`: pods of the same job reach each other by TCP on the port of sshd and from 1024 on, and DNS; nothing else.

Other traffic that jobs need, such as to an object store, is set in `egress`, and clients that may connect, such as a
scraper of metrics, in `ingress`. A job chooses another posture by the annotation
`training.openshift.io/network-policy`, out of `choices`.

Nothing filters pods in the host network: a job with such pods gets no NetworkPolicy, since its other pods would not
accept their connections. Nor does any filter RDMA, which does not go through the kernel, or further networks (Multus)
and replacements of the cluster's own network, which another kind of object filters. There, partitions (InfiniBand),
VLANs or separate networks isolate jobs.

For a job without its own NetworkPolicy, those of its namespace must admit the launcher. If one selects the workers and
none admits any pod of the namespace, a warning says so.
"""

from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from ipaddress import ip_network
from typing import Annotated, Self

from pydantic import Field, model_validator

from webhook.api.accelerators import RDMA_DEVICES, extended_resources, is_accelerator
from webhook.api.annotations import NETWORK_POLICY, mention
from webhook.api.mpijob import WORKER, MPIJob, replica_path
from webhook.api.networks import DEFAULT_NETWORK, NETWORKS
from webhook.cluster.resources.network_policies import NETWORK_POLICIES
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.kit.settings import ObjectNames, ResourceNames, WarningRuleSettings, each
from webhook.kit.settings import Settings as PolicySettings
from webhook.predict.kueue.managed import namespace_labels
from webhook.rules import CauseReason, Violation, rule, shortened
from webhook.rules.limits import MAX_OBJECT_NAME_CHARACTERS

ANNOTATION = f"metadata.annotations[{NETWORK_POLICY}]"


class Posture(StrEnum):
    """The traffic that the pods of a job accept and send, from the widest to the narrowest."""

    NONE = "none"
    DEFAULT = "default"
    RESTRICTED = "restricted"
    ISOLATED = "isolated"


def _cidr_problem(text: str) -> str | None:
    """The API server accepts no plain address, netmask or zone."""
    address, _, length = text.partition("/")
    with suppress(ValueError):
        if length == str(ip_network(text).prefixlen) and "%" not in address:
            return None
    return "is not a network such as 10.20.0.0/16 or 2001:db8::/32"


Cidrs = Annotated[tuple[str, ...], each(_cidr_problem)]
Port = Annotated[int, Field(ge=1, le=65535)]


class Peers(PolicySettings):
    """Peers outside of the job."""

    cidrs: Cidrs = Field((), description="Networks, as 10.20.0.0/16.")
    namespaces: ObjectNames = Field((), description="Names of namespaces: all of their pods.")
    ports: tuple[Port, ...] = Field((), description="TCP ports on which pods listen; none means all ports.")


class Opening(Peers):
    """Other traffic that jobs need."""

    @model_validator(mode="after")
    def _narrow(self) -> Self:
        if not (self.cidrs or self.namespaces or self.ports):
            raise ValueError("is open for all: set cidrs, namespaces or ports")
        return self


class Dns(Peers):
    """DNS, which is a pod, or a process of the node that no selector matches."""

    ports: Annotated[tuple[Port, ...], Field(min_length=1)] = Field(
        (53, 5353, 8053), description="Ports on which its pods listen, UDP and TCP."
    )


class Settings(WarningRuleSettings):
    """The NetworkPolicy of a job."""

    posture: Posture = Field(
        Posture.NONE, description="What a job gets that does not choose: none, default, restricted or isolated."
    )
    choices: tuple[Posture, ...] = Field((), description="Postures that a job may choose by its annotation.")
    https_cidrs: Cidrs = Field(
        (), description="With restricted: the targets of HTTPS, as 10.20.0.0/16; none means any."
    )
    api_ports: tuple[Port, ...] = Field(
        (443, 6443), description="With restricted: ports of the API server, for pods with a token."
    )
    dns: Dns = Field(
        Dns.model_construct(cidrs=(), namespaces=(), ports=(53, 5353, 8053)),
        description="With restricted and isolated: the DNS servers; without cidrs and namespaces, any.",
    )
    egress: tuple[Opening, ...] = Field((), description="With restricted and isolated: further targets of connections.")
    ingress: tuple[Opening, ...] = Field((), description="Who may connect to the pods, besides pods of the same job.")
    rdma_devices: ResourceNames = Field(
        RDMA_DEVICES, description="Names of the resources that are RDMA devices; * matches any text."
    )


def posture(asked: str | None, settings: Settings) -> Posture:
    """The posture of a job with this annotation."""
    return Posture(asked) if asked in settings.choices else settings.posture


@rule("network-policy", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """The annotation, then the pods of each template that no NetworkPolicy filters."""
    asked = job.annotations.get(NETWORK_POLICY)
    chosen = posture(asked, settings)
    if asked is not None and asked != chosen:
        yield _no_choice(asked, chosen, settings)
    if not job.managed_here:
        return
    if chosen is Posture.NONE:
        yield from _kept_out(job, ctx)
        return
    for _, path, replica in job.replicas():
        template = replica.template
        if template.spec is not None and template.spec.host_network:
            where = f"{path}.template.spec.hostNetwork"
            yield Violation(where, "is outside any NetworkPolicy", "Remove it.", CauseReason.FORBIDDEN)
        found = extended_resources([*template.containers, *((template.spec and template.spec.init_containers) or ())])
        if any(is_accelerator(name, settings.rdma_devices) for name in found):
            fix = "Keep jobs apart by partitions or VLANs."
            yield _passing(path, "RDMA passes by its NetworkPolicy", fix)
        if template.annotations.get(NETWORKS) or template.annotations.get(DEFAULT_NETWORK):
            yield _passing(path, "further networks pass by its NetworkPolicy", "Give it its own.")


def _kept_out(job: MPIJob, ctx: Context) -> Iterator[Violation]:
    """The namespace's own policies, which add up: a single policy that admits the launcher is enough."""
    policies = ctx.view.within(NETWORK_POLICIES, ctx.namespace)
    if policies is UNKNOWN or not policies or job.worker is None or job.launcher is None:
        return
    template = job.worker.template
    space = namespace_labels(ctx.view, ctx.namespace)
    if space is UNKNOWN or (template.spec is not None and template.spec.host_network):
        return
    of_operator = {"operator-name": "mpi-operator", "job-name": job.metadata.name, "job-role": "worker"}
    labels = {**template.labels, **{f"training.kubeflow.org/{key}": value for key, value in of_operator.items()}}
    of_workers = [policy for policy in policies.values() if policy.pods.matches(labels)]
    if of_workers and all(policy.keeps_out(space) for policy in of_workers):
        name = shortened(min(policy.name for policy in of_workers), MAX_OBJECT_NAME_CHARACTERS)
        fault = f"NetworkPolicy {name} shuts the launcher out"
        yield Violation(
            replica_path(WORKER),
            fault,
            "Allow its own pods in.",
            advisory=True,
        )


def _passing(path: str, fault: str, fix: str) -> Violation:
    return Violation(path, fault, fix, CauseReason.FORBIDDEN, advisory=True)


def _no_choice(asked: str, chosen: Posture, settings: Settings) -> Violation:
    choices = [str(choice) for choice in Posture if choice in settings.choices]
    known = asked in list(Posture)
    fault = f"{mention(NETWORK_POLICY, asked)} {'may not be chosen' if known else 'is not known'}: it is {chosen}"
    fix = f"Use {' or '.join(choices)}, or remove it." if choices else "Remove it."
    return Violation(ANNOTATION, fault, fix, CauseReason.FORBIDDEN if known else CauseReason.NOT_SUPPORTED)
