"""Two views that wrap another view.

A NotingView records which kinds of objects were unknown. An Overlay replaces the objects of one namespace.
"""

from typing import Any

from tests.support.quota_objects import quota
from webhook.cluster.resources.limit_ranges import LIMIT_RANGES
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.nodes import NODES
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ABSENT, UNKNOWN, NotingView, Overlay

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}


def test_unknown_answers_are_recorded() -> None:
    view = NotingView(Snapshot([NAMESPACE]))
    assert view.get(NAMESPACES, "a") == Namespace("a", {})
    assert view.get(NAMESPACES, "b") is ABSENT
    assert view.all(NAMESPACES) == {"a": Namespace("a", {})}
    assert view.within(LIMIT_RANGES, "a") is UNKNOWN
    view.unknown.clear()
    assert view.groups(NAMESPACES) == {}
    assert view.unknown == set()
    assert (view.all(NODES), view.groups(NODES), view.within(LIMIT_RANGES, "a")) == (UNKNOWN, UNKNOWN, UNKNOWN)
    assert view.unknown == {"nodes", "limitranges"}


def named_quota(namespace: str, name: str) -> dict[str, Any]:
    return quota({"pods": "1"}) | {"metadata": {"name": name, "namespace": namespace}}


TEAM = {**NAMESPACE, "metadata": {"name": "team"}}
BELOW = Snapshot([TEAM, named_quota("team", "old"), named_quota("other", "its")])
NEW = Snapshot([named_quota("team", "new")]).within(RESOURCE_QUOTAS, "team")


def test_overlay_replaces_the_objects_of_its_namespace() -> None:
    view = Overlay(BELOW, "team", {RESOURCE_QUOTAS: NEW})
    assert view.within(RESOURCE_QUOTAS, "team") == NEW
    assert view.get(RESOURCE_QUOTAS, ("team", "old")) is ABSENT
    assert view.get(RESOURCE_QUOTAS, ("team", "new")) is not ABSENT


def test_overlay_passes_on_all_other_queries() -> None:
    view = Overlay(BELOW, "team", {RESOURCE_QUOTAS: NEW})
    assert list(view.within(RESOURCE_QUOTAS, "other") or ()) == [("other", "its")]  # type: ignore[union-attr]
    assert view.get(RESOURCE_QUOTAS, ("other", "its")) == BELOW.get(RESOURCE_QUOTAS, ("other", "its"))
    assert view.get(NAMESPACES, "team") == Namespace("team", {})
    assert view.all(NAMESPACES) == BELOW.all(NAMESPACES)
    assert view.groups(NAMESPACES) == BELOW.groups(NAMESPACES)


def test_overlay_replaces_a_namespace() -> None:
    new = Namespace("new", {"tier": "premium"})
    view = Overlay(BELOW, "new", {NAMESPACES: {"new": new}})
    assert view.get(NAMESPACES, "new") is new
    assert view.get(NAMESPACES, "team") == Namespace("team", {})
    assert list(view.within(RESOURCE_QUOTAS, "team") or ()) == [("team", "old")]  # type: ignore[union-attr]


def test_unknown_objects_of_an_overlay_stay_unknown() -> None:
    view = Overlay(BELOW, "team", {RESOURCE_QUOTAS: UNKNOWN})
    assert view.within(RESOURCE_QUOTAS, "team") is UNKNOWN
    assert view.get(RESOURCE_QUOTAS, ("team", "old")) is UNKNOWN
    assert view.all(RESOURCE_QUOTAS) is view.groups(RESOURCE_QUOTAS) is UNKNOWN
