"""The reasons, other than quota, why pods cannot get a flavor (kueue `flavorassigner.go`, `checkFlavorForPodSets`)."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from webhook.api import taints
from webhook.api.pod import PodTemplate
from webhook.cluster.resources.resource_flavors import ResourceFlavor
from webhook.cluster.resources.topologies import TOPOLOGIES, Topology
from webhook.cluster.view import ClusterView
from webhook.predict.kueue.topology import TopologyRequest
from webhook.predict.scheduler import satisfies


class TemplatePart(Enum):
    """The part of a pod template that does not fit a flavor."""

    TOPOLOGY = "topology"
    TOLERATIONS = "tolerations"
    NODE_SELECTOR = "nodeSelector"
    NODE_AFFINITY = "nodeAffinity"


class Mismatch(NamedTuple):
    """The reason why pods do not fit a flavor. `message` is Kueue's text. `fix` is empty if no single change helps."""

    flavor: str
    part: TemplatePart
    message: str
    fix: str = ""


def mismatch(template: PodTemplate, flavor: ResourceFlavor) -> Mismatch | None:
    """The first mismatch between the template and the flavor's taints and labels; None if there is none."""
    tolerations = (*((template.spec and template.spec.tolerations) or ()), *flavor.tolerations)
    labels = _label_mismatch(template, flavor)
    if repelling := taints.untolerated(flavor.taints, tolerations):
        message = f"untolerated taint {repelling[0]} in flavor {flavor.name}"
        fix = "" if labels or len(repelling) > 1 else f"Tolerate {repelling[0].key}."
        return Mismatch(flavor.name, TemplatePart.TOLERATIONS, message, fix)
    return labels


def _label_mismatch(template: PodTemplate, flavor: ResourceFlavor) -> Mismatch | None:
    labels = flavor.node_labels
    if not labels:
        return None
    message = f"flavor {flavor.name} doesn't match node affinity"
    other = [key for key, value in template.node_selector.items() if labels.get(key, value) != value]
    holds = _any_term_holds(template, labels)
    if other:
        fix = f"Use {other[0]}: {labels[other[0]]}." if len(other) == 1 and holds else ""
        return Mismatch(flavor.name, TemplatePart.NODE_SELECTOR, message, fix)
    return None if holds else Mismatch(flavor.name, TemplatePart.NODE_AFFINITY, message)


def _any_term_holds(template: PodTemplate, labels: Mapping[str, str]) -> bool:
    """True if a required term matches. A term without any of the flavor's label keys always matches."""
    relevant = [
        [requirement for requirement in term.match_expressions or () if requirement.key in labels]
        for term in template.node_terms
    ]
    return not relevant or any(all(satisfies(labels, requirement) for requirement in term) for term in relevant)


def topology_mismatch(
    view: ClusterView, request: TopologyRequest, flavor: ResourceFlavor, *, only_topologies: bool, overlaps: bool
) -> Mismatch | None:
    """The mismatch between the topology request of a pod set and a flavor; None if there is none.

    A flavor with a topology takes only pod sets that request a topology. A flavor without a topology takes only pod
    sets that request none.

    `only_topologies`: every flavor of the ClusterQueue has a topology, so pod sets need not request one.
    `overlaps`: the pod set itself requests a resource of the flavor's group.
    """
    if not request.explicit:
        if flavor.topology and not only_topologies:
            return _topology(flavor, "supports only TopologyAwareScheduling", "Request unconstrained topology.")
        return None
    if not flavor.topology:
        drop = "Leave the topology annotations out."
        return _topology(flavor, "does not support TopologyAwareScheduling", drop) if overlaps else None
    topology = view.get(TOPOLOGIES, flavor.topology)
    if isinstance(topology, Topology) and not (request.possible and set(request.levels) <= set(topology.levels)):
        return _topology(flavor, "does not contain the requested level", f"Use {' or '.join(topology.levels)}.")
    return None


def _topology(flavor: ResourceFlavor, message: str, fix: str) -> Mismatch:
    return Mismatch(flavor.name, TemplatePart.TOPOLOGY, f"flavor {flavor.name} {message}", fix)
