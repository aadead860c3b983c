"""What a view could not answer is noted, and the answers are its own."""

from webhook.cluster.resources.limit_ranges import LIMIT_RANGES
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.nodes import NODES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ABSENT, UNKNOWN, NotingView

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}


def test_what_is_unknown_is_noted() -> None:
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
