"""How much a job has of what is looked at in reviews: counted by lengths alone, before anything is judged."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from webhook.api.mpijob import MPIJob
from webhook.api.networks import NETWORKS
from webhook.api.pod import Container, PodAffinity, PodSpec, PodTemplate


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


def sizes(job: MPIJob) -> Iterator[Size]:
    """Everything that is counted, zeros too."""
    replicas = job.spec.mpi_replica_specs or {}
    yield Size("replica_specs", "spec.mpiReplicaSpecs", len(replicas))
    yield Size("labels", "metadata.labels", len(job.labels))
    yield Size("labels", "metadata.annotations", len(job.annotations))
    policy = job.run_policy.scheduling_policy
    minimum = policy.min_resources if policy is not None else None
    yield Size("resources", "spec.runPolicy.schedulingPolicy.minResources", len(minimum or ()))
    for _, path, replica in job.replicas():
        yield from _of_template(f"{path}.template", replica.template)


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


def _of_template(path: str, template: PodTemplate) -> Iterator[Size]:
    yield Size("labels", f"{path}.metadata.labels", len(template.labels))
    yield Size("labels", f"{path}.metadata.annotations", len(template.annotations))
    spec = template.spec
    if spec is None:
        return
    path = f"{path}.spec"
    containers = [*template.containers, *template.init_containers]
    yield Size("containers", f"{path}.containers", len(containers))
    yield from _of_containers(f"{path}.containers[*]", containers)
    resources = len(spec.overhead or ()) + len(spec.resource_claims or ())
    if spec.resources is not None:
        resources += len(spec.resources.requests or ()) + len(spec.resources.limits or ())
    yield Size("resources", path, resources)
    yield Size("volumes", f"{path}.volumes", len(spec.volumes or ()))
    yield Size("references", path, _references(spec) + template.annotations.get(NETWORKS, "").count(","))
    yield Size("tolerations", f"{path}.tolerations", len(spec.tolerations or ()))
    yield Size("node_selector", f"{path}.nodeSelector", len(spec.node_selector or ()))
    yield Size("affinity", f"{path}.affinity", _affinity(spec))
    yield Size("constraints", f"{path}.topologySpreadConstraints", len(spec.topology_spread_constraints or ()))


def _of_containers(path: str, containers: list[Container]) -> Iterator[Size]:
    """Of all containers of a template together."""
    arguments = env = ports = mounts = resources = 0
    for container in containers:
        arguments += len(container.command or ()) + len(container.args or ())
        env += len(container.env or ()) + len(container.env_from or ())
        ports += len(container.ports or ())
        mounts += len(container.volume_mounts or ())
        if (wanted := container.resources) is not None:
            resources += len(wanted.requests or ()) + len(wanted.limits or ()) + len(wanted.claims or ())
        if (security := container.security_context) is not None and (capabilities := security.capabilities) is not None:
            resources += len(capabilities.add or ()) + len(capabilities.drop or ())
    yield Size("arguments", f"{path}.command", arguments)
    yield Size("env", f"{path}.env", env)
    yield Size("ports", f"{path}.ports", ports)
    yield Size("mounts", f"{path}.volumeMounts", mounts)
    yield Size("resources", f"{path}.resources", resources)


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
