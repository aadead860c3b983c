"""What is kept of Kueue's objects, of either version."""

from typing import Any

import pytest

from tests.support import kueue_objects
from webhook.cluster.resource import Resource
from webhook.cluster.resources.cluster_queues import CLUSTER_QUEUES
from webhook.cluster.resources.cohorts import COHORTS
from webhook.cluster.resources.kueue_config import KEY, KUEUE_CONFIG
from webhook.cluster.resources.local_queues import LOCAL_QUEUES
from webhook.cluster.resources.resource_flavors import RESOURCE_FLAVORS
from webhook.cluster.resources.topologies import TOPOLOGIES
from webhook.cluster.snapshot import Snapshot

OBJECTS: list[tuple[Resource[Any, Any], kueue_objects.Json]] = [
    (
        CLUSTER_QUEUES,
        kueue_objects.cluster_queue("a", {"f": {"cpu": (1, 2, 3)}}, cohort="c", stopPolicy="Hold", inactive="X"),
    ),
    (LOCAL_QUEUES, kueue_objects.local_queue("a", "b", inactive="X")),
    (COHORTS, kueue_objects.cohort("a", {"f": {"cpu": 1}}, parent="b")),
    (
        RESOURCE_FLAVORS,
        kueue_objects.flavor("a", {"b": "c"}, nodeTaints=[{"key": "t", "effect": "NoSchedule"}], topologyName="x"),
    ),
    (TOPOLOGIES, kueue_objects.topology("a", "zone", "rack")),
    (KUEUE_CONFIG, kueue_objects.config()),
]


@pytest.mark.parametrize(("resource", "manifest"), OBJECTS, ids=[resource.kind for resource, _ in OBJECTS])
def test_a_trimmed_object_says_as_much(resource: Resource[Any, Any], manifest: kueue_objects.Json) -> None:
    whole = Snapshot([manifest]).all(resource)
    assert isinstance(whole, dict)
    assert len(whole) == 1
    assert Snapshot([resource.trim(manifest)]).all(resource) == whole


def test_of_a_config_map_only_the_configuration_is_kept() -> None:
    manifest = kueue_objects.config()
    manifest["data"]["secret"] = "x"
    assert list(KUEUE_CONFIG.trim(manifest)["data"]) == [KEY]


def test_a_cohort_has_another_name_in_v1beta1() -> None:
    newer = kueue_objects.cluster_queue("a", cohort="c")
    older = kueue_objects.cluster_queue("a", cohort="c") | {"apiVersion": "kueue.x-k8s.io/v1beta1"}
    older["spec"]["cohort"] = older["spec"].pop("cohortName")
    assert Snapshot([older]).groups(CLUSTER_QUEUES) == Snapshot([newer]).groups(CLUSTER_QUEUES)
    assert list(Snapshot([older]).groups(CLUSTER_QUEUES)) == ["c"]  # type: ignore[arg-type]
