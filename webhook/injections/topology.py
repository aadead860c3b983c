"""The workers of a job run near each other: if possible in one rack, or else in one block or zone.

Workers get a preferred pod affinity to the other workers of their job. It has one term for each label in `keys` that at
least one node has. The first label has the greatest weight. Because the affinity is only a preference, workers may run
in another rack if a rack is full, and the first workers in an empty cluster are not blocked. Without the affinity the
scheduler prefers to spread the workers, because they belong to one Service.

If a node could hold all workers, the first key is `kubernetes.io/hostname`: four workers with one GPU each share a node
with eight GPUs. For this the workers must state their CPU or a device, and must have no resource claim and no host
port. A job that must run on several nodes, such as a test of the network, needs a pod anti-affinity by this key. If
more than a hundred nodes could hold a worker, the scheduler scores only some of them (`percentageOfNodesToScore` in its
configuration). A worker may then still run on another node.

The launcher only starts the ranks, so it gets no affinity; with `runLauncherAsWorker` it is one of the workers. The
terms select pods by the name of the job. For a job with `generateName` the terms have `matchLabelKeys` instead. An API
server before Kubernetes 1.31 drops this field. Therefore these terms are injected only if some kubelet has version 1.31
or newer: a kubelet is never newer than the API server.

If the policy has no `keys`, these labels are tried, the nearest first: the labels of NVIDIA's topograph, Google Cloud,
AWS and Oracle Cloud, then `topology.kubernetes.io/rack`, `topology.kubernetes.io/block` and
`topology.kubernetes.io/zone`. If the nodes are unknown, only keys in the policy are used.

In a queue of Kueue with topology-aware scheduling, pod affinity has no effect. Instead the workers get the annotation
`kueue.x-k8s.io/podset-preferred-topology` with the narrowest level above the node. With `runLauncherAsWorker` launcher
and workers get a common `kueue.x-k8s.io/podset-group-name`. Pods with the annotation cannot use flavors without a
topology. If such a flavor of the queue fits the pods, they get no annotation. The launcher gets
`kueue.x-k8s.io/podset-unconstrained-topology` if it could not start otherwise. If the queue or its flavors are unknown,
the affinity is injected; it has no effect if the queue is topology-aware.

Nothing is injected if a template has a pod affinity, `topologySpreadConstraints`, a pod anti-affinity by a label other
than `kubernetes.io/hostname`, or a topology annotation of Kueue, because the user has chosen the placement. A copied
job may have an affinity to the workers of the original job, and a warning reports it.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from webhook.api import annotations, names
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob
from webhook.api.pod import PodTemplate
from webhook.api.untyped import at, mapping
from webhook.cluster.resources.nodes import HOSTNAME
from webhook.cluster.view import UNKNOWN
from webhook.injections import Caution, injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, a_text, in_templates
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.patched_job import patched_job
from webhook.kit.settings import InjectionSettings
from webhook.predict.job_pods import job_pods
from webhook.predict.kueue import queues, topology
from webhook.predict.kueue.topology_choice import Choice, choice
from webhook.predict.nodes import AllNodes, all_nodes, node_shapes
from webhook.predict.scheduler import Room, demands, pods_per_node

_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
OPERATOR: Final = "training.kubeflow.org/operator-name"
JOB: Final = "training.kubeflow.org/job-name"
ROLE: Final = "training.kubeflow.org/job-role"
MATCH_LABEL_KEYS_SINCE: Final = (1, 31)
"""The first version of Kubernetes with `matchLabelKeys` in a pod affinity by default (KEP-3633)."""

WELL_KNOWN: Final = (
    # https://github.com/NVIDIA/topograph, the newest labels first; `tier-0` and `leaf` are the node's switch
    "fabric.topograph.run/tier-0",
    "fabric.topograph.run/tier-1",
    "fabric.topograph.run/tier-2",
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/spine",
    "network.topology.nvidia.com/core",
    "cloud.google.com/gce-topology-subblock",
    "cloud.google.com/gce-topology-block",
    "topology.k8s.aws/network-node-layer-3",
    "topology.k8s.aws/network-node-layer-2",
    "topology.k8s.aws/network-node-layer-1",
    "oci.oraclecloud.com/host.rack_id",
    "oci.oraclecloud.com/host.network_block_id",
    "topology.kubernetes.io/rack",
    "topology.kubernetes.io/block",
    "topology.kubernetes.io/zone",
)
_WEIGHTS: Final = (100, 25, 6, 1)
"""The weights of the keys in their order. Further keys have the last weight."""
_ANNOTATIONS: Final = frozenset(
    {
        topology.REQUIRED,
        topology.PREFERRED,
        topology.UNCONSTRAINED,
        topology.SLICE,
        topology.SLICE_SIZE,
        topology.LAYERS,
        topology.POD_SET_GROUP,
    }
)


def _keys(keys: tuple[str, ...] | None) -> tuple[str, ...] | None:
    for key in keys or ():
        if problem := names.label_key_problem(key):
            raise ValueError(f'"{key}" {problem}')
    return keys


class Settings(InjectionSettings):
    """The labels that show which nodes are near each other."""

    keys: Annotated[tuple[str, ...] | None, AfterValidator(_keys)] = Field(
        None,
        max_length=16,
        description="Labels of nodes by which workers are placed together, the nearest first; null for the well-known "
        "labels that nodes have.",
    )


def _term(weight: object, key: object, job: object, *, workers_only: bool) -> dict[str, object]:
    """A preference for nodes near the pods of the job `job`, which is None for a job with `generateName`."""
    labels: dict[str, object] = {OPERATOR: "mpi-operator", **({ROLE: "worker"} if workers_only else {})}
    near: dict[str, object] = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    if job is None:
        near["matchLabelKeys"] = [JOB]
    else:
        labels[JOB] = job
    return {"weight": weight, "podAffinityTerm": near}


def _is_ours(_: str, item: Any) -> bool:
    weight, near = mapping(item).get("weight"), at(item, "podAffinityTerm")
    key, labels = near.get("topologyKey"), at(near, "labelSelector", "matchLabels")
    ours = _term(weight, key, labels.get(JOB), workers_only=ROLE in labels)
    return item == ours and weight in _WEIGHTS and isinstance(key, str)


FORMS: Final = (
    *in_templates("spec", "affinity", "podAffinity", _PREFERRED, ITEM, holds=_is_ours),
    *(
        form
        for key in (topology.PREFERRED, topology.UNCONSTRAINED, topology.POD_SET_GROUP)
        for form in in_templates("metadata", "annotations", key, holds=a_text)
    ),
)


@injection("topology", Settings, since="0.1", importance=Importance.MINOR, forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    if other := _copied_from(job):
        shown = annotations.quoted(other)
        yield Caution(f"podAffinity draws the workers to job {shown}. Remove it if this job is a copy.")
        return
    if not (job.launcher and job.worker) or _is_placed(job.launcher.template) or _is_placed(job.worker.template):
        return
    roles = [WORKER, *([LAUNCHER] if job.spec.run_launcher_as_worker else [])]
    if job.workers + len(roles) - 1 < 2 or not job.managed_here:
        return
    if annotations_by_role := _of_queue(ctx, patch):
        yield from _annotate(annotations_by_role, patch)
        return
    yield from _attract(job, settings, ctx, patch, roles)


def _copied_from(job: MPIJob) -> str:
    """The name of another job in an injected affinity; empty if there is none."""
    spec = job.worker.template.spec if job.worker is not None else None
    affinity = spec.affinity.pod_affinity if spec is not None and spec.affinity is not None else None
    for term in affinity.terms if affinity is not None else ():
        labels = (term.label_selector and term.label_selector.match_labels) or {}
        if OPERATOR in labels and labels.get(JOB, job.metadata.name) != job.metadata.name:
            return labels[JOB]
    return ""


def _is_placed(template: PodTemplate) -> bool:
    """Whether the user has chosen the placement of the pods relative to other pods. True without a spec."""
    spec = template.spec
    if spec is None or spec.topology_spread_constraints or not _ANNOTATIONS.isdisjoint(template.annotations):
        return True
    if spec.affinity is None:
        return False
    near, far = spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity
    if near is not None and any(near.terms):
        return True
    return far is not None and any(term.topology_key != HOSTNAME for term in far.terms)


def _of_queue(ctx: Context, patch: PatchBuilder) -> Choice | None:
    """The annotations that the job's queue of Kueue needs; None if it needs none."""
    name = queues.of_job(ctx.view, ctx.namespace, patch.get(("metadata", "labels", QUEUE_NAME)))
    queue = queues.cluster_queue(ctx.view, ctx.namespace, name) if name and name is not UNKNOWN else None
    if queue is None:
        return None
    return choice(*patched_job(patch, ctx), queue)


def _annotate(annotations_by_role: Choice, patch: PatchBuilder) -> Iterator[str]:
    level = annotations_by_role[WORKER][topology.PREFERRED]
    added = [
        role
        for role, entries in annotations_by_role.items()
        if patch.add_entries((*template_path(role), "metadata", "annotations"), entries)
    ]
    if added:
        yield f"Kueue keeps the workers together by {level}"


def _attract(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder, roles: list[str]) -> Iterator[str]:
    nodes = all_nodes(ctx.view)
    keys = settings.keys if settings.keys is not None else () if nodes is UNKNOWN else WELL_KNOWN
    missing = [] if nodes is UNKNOWN else [key for key in keys if key not in nodes.labels]
    if settings.keys and missing:
        yield Caution(f"no node has the label {', '.join(missing)}, so it places no workers together")
    keys = tuple(key for key in dict.fromkeys(keys) if key not in missing)
    if settings.keys != () and nodes is not UNKNOWN and _share_a_node(job, ctx, nodes, roles):
        keys = tuple(dict.fromkeys((HOSTNAME, *keys)))
    if not keys:
        return
    name = None if job.metadata.generate_name else job.metadata.name or None
    if name is not None and names.label_value_problem(name):
        return  # a rule rejects the name; a selector with the name would cause a second violation
    if name is None and (nodes is UNKNOWN or nodes.kubelet < MATCH_LABEL_KEYS_SINCE):
        yield Caution(
            "workers are not placed together: a job with generateName needs nodes of Kubernetes 1.31 for this"
        )
        return
    added: dict[str, None] = {}
    for rank, key in enumerate(keys):
        term = _term(_WEIGHTS[min(rank, len(_WEIGHTS) - 1)], key, name, workers_only=len(roles) == 1)
        for role in roles:
            affinity = (*template_path(role), "spec", "affinity", "podAffinity", _PREFERRED)
            if patch.append(affinity, term, key=None):
                added[key] = None
    if added:
        yield f"workers are placed together by {', '.join(added)}"


def _share_a_node(job: MPIJob, ctx: Context, nodes: AllNodes, roles: list[str]) -> bool:
    """Whether an empty node could hold all pods of these roles. A missing limit is replaced by the request."""
    if HOSTNAME not in nodes.labels:
        return False
    together = [pods for pods in job_pods(job, ctx) if pods.role in roles]
    count = sum(pods.count for pods in together)
    for pods in together:
        amounts = {**pods.requests, **pods.limits}
        stated = any(amount > 0 and (name == "cpu" or "/" in name) for name, amount in amounts.items())
        if not stated or _keeps_apart(pods.template):
            return False
        pod_demands = demands(pods.template, amounts, None)
        if any(isinstance(demand, Room) and demand.times(nodes.most) < count for demand in pod_demands):
            return False  # saves the comparison with each shape for most jobs
        if not any((pods_per_node(pod_demands, shape) or 0) >= count for shape in node_shapes(ctx.view)):
            return False
    return bool(together)


def _keeps_apart(template: PodTemplate) -> bool:
    """Whether two pods of the template may be unable to share a node."""
    spec = template.spec
    far = spec and spec.affinity and spec.affinity.pod_anti_affinity
    ports = (port for _, _, container in template.each_container for port in container.ports or ())
    apart = spec and (spec.host_network or spec.resource_claims or (far and any(far.terms)))
    return bool(apart) or any(port.host_port for port in ports)
