"""NetworkPolicies filter the traffic of a job's pods, and admit the launcher.

With `--network-policies` the service creates a NetworkPolicy `mpijob-<job>` for every job, according to the `posture`:

- `none`: no object.
- `default`: pods accept connections only from pods of the same job.
- `restricted`: in addition, pods open connections only to pods of the same job, DNS, HTTPS (443), and, with a token,
  the API server.
- `isolated`: pods reach only DNS and pods of the same job. They reach these pods by TCP on the port of sshd and on
  ports from 1024 on.

`egress` allows other targets, such as an object store, and `ingress` other clients, such as a scraper of metrics. A job
chooses another posture, one of `choices`, by the annotation `training.openshift.io/network-policy`.

Some traffic cannot be filtered. A job with pods in the host network gets no NetworkPolicy: the NetworkPolicy would not
apply to these pods, and the other pods would reject connections from them. RDMA does not pass through the kernel.
Multus networks, and replacements of the cluster's network, have their own kind of policy. Isolate such jobs by
partitions (InfiniBand), VLANs or separate networks.

A job without its own NetworkPolicy gets a warning if policies of the namespace select its workers, and none of these
policies admits a pod of the namespace.
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
from webhook.kit.settings import ObjectNames, ResourceNames, WarningRuleSettings, valid_entries
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
    """The API server rejects a plain address, a netmask and a zone."""
    address, _, length = text.partition("/")
    with suppress(ValueError):
        if length == str(ip_network(text).prefixlen) and "%" not in address:
            return None
    return "is not a network such as 10.20.0.0/16 or 2001:db8::/32"


Cidrs = Annotated[tuple[str, ...], valid_entries(_cidr_problem)]
Port = Annotated[int, Field(ge=1, le=65535)]


class Peers(PolicySettings):
    """Peers outside of the job."""

    cidrs: Cidrs = Field((), description="Networks, such as 10.20.0.0/16.")
    namespaces: ObjectNames = Field((), description="Names of namespaces: all of their pods.")
    ports: tuple[Port, ...] = Field((), description="TCP ports on which pods listen; an empty list means all ports.")


class Opening(Peers):
    """Other targets or clients of a job's pods."""

    @model_validator(mode="after")
    def _narrow(self) -> Self:
        if not (self.cidrs or self.namespaces or self.ports):
            raise ValueError("allows all traffic: set cidrs, namespaces or ports")
        return self


class Dns(Peers):
    """The DNS servers: pods, or processes of the nodes. No selector matches processes of the nodes."""

    ports: Annotated[tuple[Port, ...], Field(min_length=1)] = Field(
        (53, 5353, 8053), description="Ports on which its pods listen, UDP and TCP."
    )


class Settings(WarningRuleSettings):
    """The NetworkPolicy of a job."""

    posture: Posture = Field(
        Posture.NONE, description="The posture of jobs that choose no other: none, default, restricted or isolated."
    )
    choices: tuple[Posture, ...] = Field((), description="Postures that a job may choose by its annotation.")
    https_cidrs: Cidrs = Field(
        (), description="With restricted: the targets of HTTPS, such as 10.20.0.0/16; empty for any."
    )
    api_ports: tuple[Port, ...] = Field(
        (443, 6443), description="With restricted: ports of the API server, for pods with a token."
    )
    dns: Dns = Field(
        Dns.model_construct(cidrs=(), namespaces=(), ports=(53, 5353, 8053)),
        description="With restricted and isolated: the DNS servers; without cidrs and namespaces, any.",
    )
    egress: tuple[Opening, ...] = Field((), description="With restricted and isolated: further targets of connections.")
    ingress: tuple[Opening, ...] = Field((), description="Other clients that may connect to the pods.")
    rdma_devices: ResourceNames = Field(
        RDMA_DEVICES, description="Names of the resources that are RDMA devices; * matches any text."
    )


def posture(requested: str | None, settings: Settings) -> Posture:
    """The posture of a job whose annotation is `requested`."""
    return Posture(requested) if requested in settings.choices else settings.posture


@rule("network-policy", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    requested = job.annotations.get(NETWORK_POLICY)
    chosen = posture(requested, settings)
    if requested is not None and requested != chosen:
        yield _no_choice(requested, chosen, settings)
    if not job.managed_here:
        return
    if chosen is Posture.NONE:
        yield from _blocked_launcher(job, ctx)
        return
    for _, path, replica in job.replicas:
        template = replica.template
        if template.spec is not None and template.spec.host_network:
            where = f"{path}.template.spec.hostNetwork"
            yield Violation(where, "is outside any NetworkPolicy", "Remove it.", CauseReason.FORBIDDEN)
        resources = extended_resources([*template.containers, *template.init_containers])
        if any(is_accelerator(name, settings.rdma_devices) for name in resources):
            yield _unfiltered(path, "its NetworkPolicy does not filter RDMA", "Use partitions or VLANs.")
        if template.annotations.get(NETWORKS) or template.annotations.get(DEFAULT_NETWORK):
            yield _unfiltered(path, "its NetworkPolicy does not filter further networks", "Give them a policy.")


def _blocked_launcher(job: MPIJob, ctx: Context) -> Iterator[Violation]:
    """Nothing is reported if one policy of the namespace admits the launcher."""
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
    if of_workers and all(policy.denies_own_namespace(space) for policy in of_workers):
        name = shortened(min(policy.name for policy in of_workers), MAX_OBJECT_NAME_CHARACTERS)
        fault = f"NetworkPolicy {name} blocks the launcher"
        yield Violation(replica_path(WORKER), fault, "Allow its own pods in.", advisory=True)


def _unfiltered(path: str, fault: str, fix: str) -> Violation:
    return Violation(path, fault, fix, CauseReason.FORBIDDEN, advisory=True)


def _no_choice(requested: str, chosen: Posture, settings: Settings) -> Violation:
    choices = [str(choice) for choice in Posture if choice in settings.choices]
    is_posture = requested in list(Posture)
    fault = (
        f"{mention(NETWORK_POLICY, requested)} {'may not be chosen' if is_posture else 'is not known'}: it is {chosen}"
    )
    fix = f"Use {' or '.join(choices)}, or remove it." if choices else "Remove it."
    return Violation(ANNOTATION, fault, fix, CauseReason.FORBIDDEN if is_posture else CauseReason.NOT_SUPPORTED)
