"""Pods fit a flavor of Kueue if they match its node labels, taints and topology."""

from typing import Any

import msgspec
import pytest

from tests.support.kueue_objects import Json, flavor, topology
from webhook.api.pod import PodTemplate
from webhook.cluster.resources.resource_flavors import RESOURCE_FLAVORS, ResourceFlavor
from webhook.cluster.snapshot import Snapshot
from webhook.predict.kueue import topology as annotations
from webhook.predict.kueue.flavors import Mismatch, TemplatePart, mismatch, topology_mismatch
from webhook.predict.kueue.topology import TopologyRequest

PRODUCT = "nvidia.com/gpu.product"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
SPOT_TAINT = {"key": "spot", "effect": "NoExecute"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


def record(manifest: Json) -> ResourceFlavor:
    flavor = Snapshot([manifest]).get(RESOURCE_FLAVORS, manifest["metadata"]["name"])
    assert isinstance(flavor, ResourceFlavor)
    return flavor


def template(**spec: Any) -> PodTemplate:
    return msgspec.convert({"spec": spec}, PodTemplate)


def affinity(*terms: list[Json]) -> Json:
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def term(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


PLAIN = flavor("f")
H100 = flavor("f", {PRODUCT: "H100", "size": "80"})


@pytest.mark.parametrize(
    ("manifest", "spec"),
    [
        (PLAIN, {}),
        (H100, {"nodeSelector": {PRODUCT: "H100", "other": "x"}}),
        (H100, {"affinity": affinity([term(PRODUCT, "In", "A100")], [term("other", "In", "x")])}),
        (H100, {"affinity": affinity([term(PRODUCT, "In", "A100")], [term(PRODUCT, "Exists")])}),
        (H100, {"affinity": affinity([term(PRODUCT, "NotIn", "A100"), term("size", "Gt", "79")])}),
        (H100, {"affinity": {"nodeAffinity": {}}}),
        (flavor("f", nodeTaints=[GPU_TAINT]), {"tolerations": [TOLERATION]}),
        (flavor("f", nodeTaints=[GPU_TAINT], tolerations=[TOLERATION]), {}),
        (flavor("f", nodeTaints=[{"key": "soft", "effect": "PreferNoSchedule"}]), {}),
    ],
)
def test_pods_that_match_labels_and_taints_fit_the_flavor(manifest: Json, spec: Json) -> None:
    assert mismatch(template(**spec), record(manifest)) is None


SELECTOR_MISMATCH = (TemplatePart.NODE_SELECTOR, "flavor f doesn't match node affinity")
AFFINITY_MISMATCH = (TemplatePart.NODE_AFFINITY, "flavor f doesn't match node affinity", "")
SPOT_MISMATCH = (TemplatePart.TOLERATIONS, "untolerated taint spot:NoExecute in flavor f", "")
GPU_MISMATCH = (
    TemplatePart.TOLERATIONS,
    "untolerated taint nvidia.com/gpu=present:NoSchedule in flavor f",
    "Tolerate nvidia.com/gpu.",
)


@pytest.mark.parametrize(
    ("manifest", "spec", "expected"),
    [
        (H100, {"nodeSelector": {PRODUCT: "A100"}}, (*SELECTOR_MISMATCH, f"Use {PRODUCT}: H100.")),
        (H100, {"affinity": affinity([term(PRODUCT, "In", "A100")])}, AFFINITY_MISMATCH),
        (H100, {"affinity": affinity([term("size", "Lt", "80"), term("o", "Exists")])}, AFFINITY_MISMATCH),
        (H100, {"affinity": affinity([term(PRODUCT, "DoesNotExist")])}, AFFINITY_MISMATCH),
        (
            flavor("f", nodeTaints=[GPU_TAINT]),
            {"tolerations": [{**GPU_TAINT, "value": "absent"}, {**TOLERATION, "effect": "NoExecute"}]},
            GPU_MISMATCH,
        ),
        (flavor("f", nodeTaints=[SPOT_TAINT, GPU_TAINT]), {}, SPOT_MISMATCH),
        (flavor("f", {"a": "b"}, nodeTaints=[SPOT_TAINT]), {"nodeSelector": {"a": "c"}}, SPOT_MISMATCH),
    ],
)
def test_pods_that_do_not_match_the_flavor_get_a_reason(
    manifest: Json, spec: Json, expected: tuple[TemplatePart, str, str]
) -> None:
    assert mismatch(template(**spec), record(manifest)) == Mismatch("f", *expected)


VIEW = Snapshot([topology("racks", "zone", "rack", "host")])
TAS = record(flavor("f", {"tas": "yes"}, topologyName="racks"))
NO_TAS = record(PLAIN)
REQUIRED, PREFERRED, UNCONSTRAINED = annotations.REQUIRED, annotations.PREFERRED, annotations.UNCONSTRAINED
SLICE, SLICE_SIZE = annotations.SLICE, annotations.SLICE_SIZE
LEVEL = "does not contain the requested level"


@pytest.mark.parametrize(
    ("given", "target", "only_topologies", "overlaps", "expected"),
    [
        ({}, NO_TAS, False, True, None),
        ({}, TAS, False, True, "supports only TopologyAwareScheduling"),
        ({REQUIRED: "rack"}, TAS, False, True, None),
        ({UNCONSTRAINED: "true"}, TAS, False, True, None),
        ({REQUIRED: "rack"}, NO_TAS, False, False, None),
        ({REQUIRED: "rack"}, NO_TAS, False, True, "does not support TopologyAwareScheduling"),
        ({REQUIRED: "row"}, TAS, False, True, LEVEL),
        ({PREFERRED: "zone", SLICE: "row", SLICE_SIZE: "2"}, TAS, False, True, LEVEL),
        ({SLICE: "row", SLICE_SIZE: "2"}, TAS, False, True, LEVEL),
        ({UNCONSTRAINED: "false"}, TAS, False, True, LEVEL),
        ({REQUIRED: "row"}, record(flavor("f", {"a": "b"}, topologyName="gone")), False, True, None),
    ],
)
def test_topology_request_is_compared_with_the_topology_of_the_flavor(
    given: dict[str, str], target: ResourceFlavor, only_topologies: bool, overlaps: bool, expected: str | None
) -> None:
    request = TopologyRequest.of(given)
    assert request is not None
    result = topology_mismatch(VIEW, request, target, only_topologies=only_topologies, overlaps=overlaps)
    assert (result and result.message) == (expected and f"flavor f {expected}")


def test_topology_request_with_the_annotation_for_layers_is_not_evaluated() -> None:
    assert TopologyRequest.of({annotations.LAYERS: "[]"}) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [({REQUIRED: "rack"}, "g"), ({PREFERRED: "rack"}, "g"), ({UNCONSTRAINED: "true"}, ""), ({}, "")],
)
def test_pod_set_group_is_ignored_without_a_level(given: dict[str, str], expected: str) -> None:
    request = TopologyRequest.of({**given, annotations.POD_SET_GROUP: "g"})
    assert request is not None
    assert request.group == expected
