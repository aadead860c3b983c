"""How much a job has of what is looked at in reviews: counted by lengths alone, before anything is judged."""

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import gt
from typing import Any, NamedTuple

import msgspec

from webhook.api.mpijob import MPIJob
from webhook.api.networks import NETWORKS
from webhook.api.pod import Container, PodAffinity, PodSpec, PodTemplate, TemplateMeta
from webhook.api.requirements import ResourceRequirements
from webhook.api.volume import Volume


class Size(NamedTuple):
    """So many of one kind at one place."""

    kind: str
    """The key in `KINDS`."""
    path: str
    amount: int


KINDS = {
    "replica_specs": "keys",
    "labels": "labels or annotations",
    "containers": "containers",
    "arguments": "arguments",
    "env": "environment variables",
    "resources": "resources and claims",
    "ports": "ports",
    "mounts": "volume mounts",
    "volumes": "volumes",
    "references": "references",
    "tolerations": "tolerations",
    "node_selector": "nodeSelector keys",
    "affinity": "affinity terms, expressions and values",
    "constraints": "topology spread constraints",
}
"""What is counted, and its name in messages."""
_EACH = ".template.spec.containers[*]"
# Kind and place of what is counted of a template, in the order of `_of_template`.
_IN_TEMPLATE = (
    ("labels", ".template.metadata.labels"),
    ("labels", ".template.metadata.annotations"),
    ("containers", ".template.spec.containers"),
    ("arguments", f"{_EACH}.command"),
    ("env", f"{_EACH}.env"),
    ("ports", f"{_EACH}.ports"),
    ("mounts", f"{_EACH}.volumeMounts"),
    ("resources", f"{_EACH}.resources"),
    ("resources", ".template.spec"),
    ("volumes", ".template.spec.volumes"),
    ("references", ".template.spec"),
    ("tolerations", ".template.spec.tolerations"),
    ("node_selector", ".template.spec.nodeSelector"),
    ("affinity", ".template.spec.affinity"),
    ("constraints", ".template.spec.topologySpreadConstraints"),
)


class Bounds:
    """The most of each of `KINDS` that a job may have."""

    def __init__(self, most: Mapping[str, int]) -> None:
        self.most = most
        self.in_template = tuple(most[kind] for kind, _ in _IN_TEMPLATE)


def beyond(bounds: Bounds, job: MPIJob) -> list[Size]:
    """What there is more of than `bounds` allow."""
    policy, metadata = job.run_policy.scheduling_policy, job.metadata
    of_job = (
        ("replica_specs", "spec.mpiReplicaSpecs", job.spec.mpi_replica_specs),
        ("labels", "metadata.labels", metadata.labels),
        ("labels", "metadata.annotations", metadata.annotations),
        ("resources", "spec.runPolicy.schedulingPolicy.minResources", policy and policy.min_resources),
    )
    found = []
    for kind, path, items in of_job:
        if items and len(items) > bounds.most[kind]:
            found.append(Size(kind, path, len(items)))
    for _, path, replica in job.replicas():
        amounts = _of_template(replica.template)
        for index in compress(range(len(amounts)), map(gt, amounts, bounds.in_template)):
            kind, place = _IN_TEMPLATE[index]
            found.append(Size(kind, path + place, amounts[index]))
    return found


def longest_text(job: MPIJob, most: int) -> Size | None:
    """The first text or key of more than `most` characters; values of annotations, which have a bound of their own in
    Kubernetes, are left out."""
    read = {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "metadata": msgspec.to_builtins(job.metadata),
        "spec": msgspec.to_builtins(job.spec),
    }
    return _long_text(read, most) if _has_long_text(read, most) else None


def _has_long_text(document: Any, most: int) -> bool:
    """Whether there is one, without its place: to know that of each text takes five times as long."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if len(value) > most:
                return True
        elif isinstance(value, dict):
            waiting += value
            annotations = value.get("annotations")
            if isinstance(annotations, dict):
                waiting += annotations
                waiting += (item for key, item in value.items() if key != "annotations")
            else:
                waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False


def _long_text(document: Any, most: int) -> Size | None:
    # One list for the whole walk, since a nested one costs a call for each value.
    waiting: list[tuple[str, Any]] = list(document.items())
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            if len(value) > most:
                return Size("text", path, len(value))
        elif isinstance(value, dict):
            if key := next((key for key in value if len(key) > most), None):
                return Size("text", path, len(key))
            if not path.endswith("annotations"):
                waiting += ((f"{path}.{key}", item) for key, item in value.items())
        elif isinstance(value, list):
            waiting += ((f"{path}[{index}]", item) for index, item in enumerate(value))
    return None


def _of_template(template: PodTemplate) -> tuple[int, ...]:
    """How much there is of each of `_IN_TEMPLATE`."""
    metadata, spec = template.metadata or _NO_METADATA, template.spec or _NO_SPEC
    resources = len(spec.overhead or ()) + len(spec.resource_claims or ())
    resources += _amounts(spec.resources) + sum(map(_of_claim, spec.volumes or ()))
    return (
        len(metadata.labels or ()),
        len(metadata.annotations or ()),
        *_of_containers([*(spec.containers or ()), *(spec.init_containers or ())]),
        resources,
        len(spec.volumes or ()),
        _references(spec) + (metadata.annotations or {}).get(NETWORKS, "").count(","),
        len(spec.tolerations or ()),
        len(spec.node_selector or ()),
        _affinity(spec),
        len(spec.topology_spread_constraints or ()),
    )


_NO_METADATA = TemplateMeta()
_NO_SPEC = PodSpec()


def _of_containers(containers: Sequence[Container]) -> tuple[int, ...]:
    """How many they are, then their arguments, variables, ports, mounts and resources."""
    arguments = env = ports = mounts = resources = 0
    for container in containers:
        arguments += len(container.command or ()) + len(container.args or ())
        env += len(container.env or ()) + len(container.env_from or ())
        ports += len(container.ports or ())
        mounts += len(container.volume_mounts or ())
        if (wanted := container.resources) is not None:
            resources += _amounts(wanted) + len(wanted.claims or ())
        if (security := container.security_context) is not None and (capabilities := security.capabilities) is not None:
            resources += len(capabilities.add or ()) + len(capabilities.drop or ())
    return len(containers), arguments, env, ports, mounts, resources


def _of_claim(volume: Volume) -> int:
    """The requests and limits of the claim that is made for a volume."""
    claim = volume.ephemeral and volume.ephemeral.volume_claim_template
    return _amounts(claim.spec.resources) if claim and claim.spec else 0


def _amounts(resources: ResourceRequirements | None) -> int:
    return 0 if resources is None else len(resources.requests or ()) + len(resources.limits or ())


def _references(spec: PodSpec) -> int:
    """Pull secrets, and what volumes with several sources name; the caller adds the networks."""
    count = len(spec.image_pull_secrets or ())
    for volume in spec.volumes or ():
        if volume.projected is not None:
            count += len(volume.projected.sources or ())
            for source in volume.projected.sources or ():
                count += len(source.downward_api.items or ()) if source.downward_api is not None else 0
        if volume.downward_api is not None:
            count += len(volume.downward_api.items or ())
    return count


def _affinity(spec: PodSpec) -> int:
    if spec.affinity is None:
        return 0
    nodes = spec.affinity.node_affinity
    required = nodes.required_during_scheduling_ignored_during_execution if nodes is not None else None
    count = 0
    for term in (required.node_selector_terms if required is not None else None) or ():
        count += 1
        for expressions in (term.match_expressions, term.match_fields):
            for expression in expressions or ():
                count += 1 + len(expression.values or ())
    return count + _pods(spec.affinity.pod_affinity) + _pods(spec.affinity.pod_anti_affinity)


def _pods(affinity: PodAffinity | None) -> int:
    if affinity is None:
        return 0
    count = len(affinity.preferred_during_scheduling_ignored_during_execution or ())
    return count + sum(1 + len(term.namespaces or ()) for term in affinity.terms)
