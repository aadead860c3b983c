"""How much a job has of what is looked at in reviews: counted by lengths alone, before anything is judged."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from webhook.api.mpijob import MPIJob
from webhook.api.networks import NETWORKS
from webhook.api.pod import PodAffinity, PodSpec, PodTemplate


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
# Kind, the parts of the path, and how many there are.
Note = Callable[[str, tuple[str, ...], int], None]
_EACH = ".template.spec.containers[*]"


def beyond(bounds: Mapping[str, int], job: MPIJob) -> list[Size]:
    """What there is more of than `bounds` allow, which has a bound for each of `KINDS`."""
    found: list[Size] = []

    def note(kind: str, where: tuple[str, ...], amount: int) -> None:
        if amount > bounds[kind]:
            found.append(Size(kind, "".join(where), amount))

    note("replica_specs", ("spec.mpiReplicaSpecs",), len(job.spec.mpi_replica_specs or ()))
    note("labels", ("metadata.labels",), len(job.metadata.labels or ()))
    note("labels", ("metadata.annotations",), len(job.metadata.annotations or ()))
    if (policy := job.run_policy.scheduling_policy) is not None:
        note("resources", ("spec.runPolicy.schedulingPolicy.minResources",), len(policy.min_resources or ()))
    for _, path, replica in job.replicas():
        _count_template(replica.template, path, note)
    return found


def longest_text(job: MPIJob, most: int) -> Size | None:
    """The first text or key of more than `most` characters; values of annotations, which have a bound of their own in
    Kubernetes, are left out."""
    # One list for the whole walk, since a nested one costs a call for each value.
    waiting: list[tuple[str, Any]] = [("apiVersion", job.api_version), ("kind", job.kind)]
    waiting += (("metadata", msgspec.to_builtins(job.metadata)), ("spec", msgspec.to_builtins(job.spec)))
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


def _count_template(template: PodTemplate, path: str, note: Note) -> None:
    if template.metadata is not None:
        note("labels", (path, ".template.metadata.labels"), len(template.metadata.labels or ()))
        note("labels", (path, ".template.metadata.annotations"), len(template.metadata.annotations or ()))
    spec = template.spec
    if spec is None:
        return
    _count_containers(spec, path, note)
    resources = len(spec.overhead or ()) + len(spec.resource_claims or ())
    if spec.resources is not None:
        resources += len(spec.resources.requests or ()) + len(spec.resources.limits or ())
    references = _references(spec) + template.annotations.get(NETWORKS, "").count(",")
    note("resources", (path, ".template.spec"), resources)
    note("volumes", (path, ".template.spec.volumes"), len(spec.volumes or ()))
    note("references", (path, ".template.spec"), references)
    note("tolerations", (path, ".template.spec.tolerations"), len(spec.tolerations or ()))
    note("node_selector", (path, ".template.spec.nodeSelector"), len(spec.node_selector or ()))
    note("affinity", (path, ".template.spec.affinity"), _affinity(spec))
    constraints = len(spec.topology_spread_constraints or ())
    note("constraints", (path, ".template.spec.topologySpreadConstraints"), constraints)


def _count_containers(spec: PodSpec, path: str, note: Note) -> None:
    """Of all containers of a template together."""
    arguments = env = ports = mounts = resources = 0
    containers = [*(spec.containers or ()), *(spec.init_containers or ())]
    for container in containers:
        arguments += len(container.command or ()) + len(container.args or ())
        env += len(container.env or ()) + len(container.env_from or ())
        ports += len(container.ports or ())
        mounts += len(container.volume_mounts or ())
        if (wanted := container.resources) is not None:
            resources += len(wanted.requests or ()) + len(wanted.limits or ()) + len(wanted.claims or ())
        if (security := container.security_context) is not None and (capabilities := security.capabilities) is not None:
            resources += len(capabilities.add or ()) + len(capabilities.drop or ())
    note("containers", (path, ".template.spec.containers"), len(containers))
    note("arguments", (path, _EACH, ".command"), arguments)
    note("env", (path, _EACH, ".env"), env)
    note("ports", (path, _EACH, ".ports"), ports)
    note("mounts", (path, _EACH, ".volumeMounts"), mounts)
    note("resources", (path, _EACH, ".resources"), resources)


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
