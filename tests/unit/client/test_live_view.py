"""Watches keep the records of the live view up to date."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.support.logs import Log
from tests.support.watch_api import Handler, event, page, refused, serving, stream, thing, until
from webhook.client.live_view import LiveView
from webhook.cluster.owned import Owned
from webhook.cluster.resources.local_queues import LOCAL_QUEUES
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.nodes import NODES
from webhook.cluster.resources.other_pods import OTHER_PODS
from webhook.cluster.resources.resource_flavors import RESOURCE_FLAVORS
from webhook.cluster.resources.topologies import TOPOLOGIES
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView


async def test_namespaces_are_kept_up_to_date() -> None:
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


async def test_forbidden_kind_delays_no_review() -> None:
    async with serving() as (api, link):
        api.lists = [refused(403)]
        live = LiveView(link, log=Log())
        running = asyncio.create_task(live.run())
        await live.settled()
        assert live.get(NAMESPACES, "plain") is UNKNOWN
        running.cancel()


def answers_by_plural(**answers: Handler) -> Handler:
    """Return a handler that chooses its answer by the plural in the path. Kinds without an answer are not installed."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return await answers.get(request.path.rsplit("/", 1)[-1], refused(404))(request)

    return handle


async def test_pods_outside_of_jobs_are_cached_without_delaying_reviews() -> None:
    listed = asyncio.Event()

    async def late(request: web.BaseRequest) -> web.StreamResponse:
        await listed.wait()
        return await page(thing("web", namespace="a"), thing("train-worker-0", namespace="a"))(request)

    async with serving() as (api, link):
        api.lists = [answers_by_plural(namespaces=page(), pods=late)]
        live = LiveView(link, log=Log(), resources=[NAMESPACES, OTHER_PODS])
        running = asyncio.create_task(live.run())
        await live.settled()
        assert live.all(NAMESPACES) == {}
        assert live.within(OTHER_PODS, "a") is UNKNOWN
        listed.set()
        await until(lambda: live.within(OTHER_PODS, "a") is not UNKNOWN)
        assert live.within(OTHER_PODS, "a") == {("a", "train-worker-0"): Owned("a", "train-worker-0")}
        running.cancel()
    pods = [dict(request.query) for request in api.requests if request.path.endswith("/pods")]
    assert {query["labelSelector"] for query in pods} == {"!training.kubeflow.org/job-name"}


async def test_kind_that_cannot_be_listed_does_not_delay_reviews_forever() -> None:
    """For example, each list of Kueue's kinds fails with 500 while Kueue's conversion webhook is down."""
    broken = refused(500, "conversion webhook failed")
    async with serving() as (api, link):
        api.lists = [answers_by_plural(namespaces=page(thing("plain")), localqueues=broken, nodes=refused(403))]
        live = LiveView(link, log=Log(), resources=[LOCAL_QUEUES, NAMESPACES, NODES, TOPOLOGIES], patience=0.3)
        running = asyncio.create_task(live.run())
        await live.settled()
        # On a busy machine, the time limit `patience` may end before any kind is listed.
        await until(lambda: live.get(NAMESPACES, "plain") == Namespace("plain", {}))
        # A missing right is a fault. A kind that is not installed is no fault.
        faults = {"localqueues": "server-error: conversion webhook failed", "nodes": "forbidden: HTTP 403"}
        await until(lambda: live.faults() == faults)
        assert live.within(LOCAL_QUEUES, "plain") is UNKNOWN
        await until(lambda: live.not_installed() == ["topologies"])
        assert live.not_served(TOPOLOGIES)
        assert not any(map(live.not_served, (LOCAL_QUEUES, NAMESPACES, NODES, RESOURCE_FLAVORS)))
        # Every version is requested.
        await until(lambda: len({request.path for request in api.requests if "localqueues" in request.path}) > 1)
        api.lists = [answers_by_plural(namespaces=page(thing("plain")), localqueues=page())]
        for watch in live.watches:
            watch._sleep = _at_once
        await until(lambda: live.within(LOCAL_QUEUES, "plain") == {})
        await until(lambda: live.faults() == {})
        running.cancel()


async def _at_once(_: float) -> None:
    await asyncio.sleep(0.001)


CUT = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 257}


@pytest.mark.parametrize(
    ("metadata", "labels", "annotations"),
    [
        ({}, {}, {}),
        ({"labels": None, "annotations": None}, {}, {}),
        ({"labels": {"a": "b"}, "annotations": {"c": "d"}}, {"a": "b"}, {"c": "d"}),
        ({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 9_999}}, {}, CUT),
    ],
)
def test_record_of_a_namespace_has_its_name_and_labels_and_shortened_annotations(
    metadata: dict[str, Any], labels: dict[str, str], annotations: dict[str, str]
) -> None:
    manifest = {"metadata": {"name": "team", **metadata}, "spec": {"finalizers": ["kubernetes"]}, "status": {}}
    assert NAMESPACES.project(msgspec.Raw(json.dumps(manifest).encode())) == Namespace("team", labels, annotations)
