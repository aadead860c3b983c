"""The topology annotations that keep the workers of a job together in a ClusterQueue.

A flavor with a topology takes only pod sets that request a topology. A flavor without a topology takes only pod sets
that request none. If every flavor of a queue has a topology, Kueue treats every pod set as if it requested a topology
(kueue `pkg/scheduler/flavorassigner/tas_flavorassigner.go`). If a queue has flavors of both kinds, a job gets the
annotations only if no flavor takes the job without them.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from msgspec.structs import replace

from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob
from webhook.cluster.resources.cluster_queues import ClusterQueue
from webhook.cluster.resources.nodes import HOSTNAME
from webhook.cluster.resources.resource_flavors import RESOURCE_FLAVORS, ResourceFlavor
from webhook.cluster.resources.topologies import TOPOLOGIES, Topology
from webhook.cluster.view import UNKNOWN, ClusterView
from webhook.kit.context import Context
from webhook.predict.kueue.feasibility import obstacles
from webhook.predict.kueue.managed import configuration, manages
from webhook.predict.kueue.pod_sets import pod_sets
from webhook.predict.kueue.topology import POD_SET_GROUP, PREFERRED, UNCONSTRAINED, TopologyRequest
from webhook.predict.limits import MAX_TOPOLOGIES_TRIED

Choice = Mapping[str, Mapping[str, str]]
"""Annotations by role."""

GROUP: Final = "workers"
"""The pod set group that a launcher with `runLauncherAsWorker` shares with the workers. Kueue rejects a name that is a
number.
"""


def choice(job: MPIJob, ctx: Context, queue: ClusterQueue) -> Choice | None:
    """The annotations that keep the workers together; None if the job needs none, or if that is unknown."""
    config = configuration(ctx.view)
    if config is UNKNOWN or config.topology_aware is not True or manages(ctx.view, ctx.namespace) is not True:
        return None
    flavors = _flavors(ctx.view, queue)
    if flavors is None:
        return None
    mixed = not all(flavor.topology for flavor in flavors)
    tried = list(islice(_choices(job, _levels(ctx.view, flavors), mixed=mixed), MAX_TOPOLOGIES_TRIED))
    sets = pod_sets(job, ctx, config) if tried else None
    if sets is None:
        # If all flavors have a topology, a job may always request one.
        return tried[0] if tried and not mixed else None
    if mixed and not any(obstacles(ctx.view, queue, sets, config)):
        return None
    for annotations in tried:
        annotated = [
            replace(pods, topology=TopologyRequest.of(annotations.get(pods.role, {})) or pods.topology) for pods in sets
        ]
        if not any(obstacles(ctx.view, queue, annotated, config)):
            return annotations
    return None if mixed else tried[0]


def _flavors(view: ClusterView, queue: ClusterQueue) -> list[ResourceFlavor] | None:
    """The queue's flavors in order; None if a flavor is unknown."""
    flavors = []
    for name in (name for group in queue.groups for name in group.flavors):
        flavor = view.get(RESOURCE_FLAVORS, name)
        if not isinstance(flavor, ResourceFlavor):
            return None
        flavors.append(flavor)
    return flavors


def _choices(job: MPIJob, levels: list[str], *, mixed: bool) -> Iterator[Choice]:
    for level in levels:
        if job.spec.run_launcher_as_worker:
            together = {PREFERRED: level, POD_SET_GROUP: GROUP}
            yield {LAUNCHER: together, WORKER: together}
            continue
        workers = {WORKER: {PREFERRED: level}}
        yield workers
        if mixed:
            yield {LAUNCHER: {UNCONSTRAINED: "true"}, **workers}


def _levels(view: ClusterView, flavors: list[ResourceFlavor]) -> list[str]:
    """The narrowest level above the node in each flavor's topology. Levels that all topologies share come first."""
    levels_of_flavors: list[tuple[str, ...]] = []
    for name in dict.fromkeys(flavor.topology for flavor in flavors if flavor.topology):
        topology = view.get(TOPOLOGIES, name)
        if isinstance(topology, Topology) and topology.levels:
            levels_of_flavors.append(topology.levels)
    narrowest: list[str] = []
    common = set.intersection(*map(set, levels_of_flavors)) if levels_of_flavors else set()
    for levels in levels_of_flavors:
        for usable in ([level for level in levels if level in common], list(levels)):
            above = [level for level in usable if level != HOSTNAME] or usable
            narrowest += above[-1:]
    return list(dict.fromkeys(sorted(narrowest, key=lambda level: level not in common)))
