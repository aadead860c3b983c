"""The live view, and what is kept of each kind."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from tests.support.logs import Log
from tests.support.watch_api import event, page, refused, serving, stream, thing, until
from webhook.client.live_view import LiveView
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView


async def test_namespaces_follow_the_cluster() -> None:
    async with serving() as (api, link):
        api.lists = [page(thing("plain"))]
        team = event("ADDED", "team", 8)
        team["object"]["metadata"]["labels"] = {"tier": "premium"}
        api.watches = [stream(team)]
        live = LiveView(link, log=Log(), resources=[NAMESPACES])
        view: ClusterView = live
        assert (view.get(NAMESPACES, "plain"), live.all(NAMESPACES)) == (UNKNOWN, UNKNOWN)
        running = asyncio.create_task(live.run())
        await live.settled()
        assert view.get(NAMESPACES, "plain") == Namespace("plain", {})
        assert live.all(NAMESPACES) == {"plain": Namespace("plain", {})}
        await until(lambda: live.watches[0].events)
        assert view.get(NAMESPACES, "team") == Namespace("team", {"tier": "premium"})
        assert view.get(NAMESPACES, "other") is ABSENT
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert [request.path for request in api.requests] == ["/api/v1/namespaces"] * 2


async def test_every_kind_is_watched() -> None:
    async with serving() as (_, link):
        names = [watch.kind.name for watch in LiveView(link, log=Log()).watches]
    assert len(set(names)) == len(names)
    several = {"workloadpriorityclasses-v1beta2", "workloadpriorityclasses-v1beta1"}
    assert {"namespaces", "persistentvolumeclaims", *several} <= set(names)


async def test_what_is_refused_keeps_nobody_waiting() -> None:
    async with serving() as (api, link):
        api.lists = [refused(403)]
        live = LiveView(link, log=Log())
        running = asyncio.create_task(live.run())
        await live.settled()
        assert live.get(NAMESPACES, "plain") is UNKNOWN
        running.cancel()


@pytest.mark.parametrize(
    ("metadata", "labels"),
    [
        ({}, {}),
        ({"labels": None}, {}),
        ({"labels": {"a": "b"}, "annotations": {"c": "d"}, "managedFields": [{"manager": "x"}]}, {"a": "b"}),
    ],
)
def test_a_namespace_is_its_name_and_labels(metadata: dict[str, Any], labels: dict[str, str]) -> None:
    manifest = {"metadata": {"name": "team", **metadata}, "spec": {"finalizers": ["kubernetes"]}, "status": {}}
    assert NAMESPACES.project(msgspec.Raw(json.dumps(manifest).encode())) == Namespace("team", labels)
