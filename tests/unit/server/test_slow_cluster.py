"""Deadlines of reviews, and reviews that wait for the cluster."""

import asyncio
import time

import pytest

from tests.support import quota_objects
from tests.support.live_service import head, live
from tests.support.policies import layer
from tests.support.reviews_to_send import GOOD, HOOKS, exempting
from webhook.api import review
from webhook.client.calls import ApiError, ClusterError
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.policy.in_force import PolicySet
from webhook.server import review_handler
from webhook.server.http_request import Request


@pytest.mark.parametrize(
    ("timeout", "status"), [("1ms", 504), ("30s", 200), ("", 200), ("soon", 200), ("-1s", 200), ("0s", 200)]
)
def test_timeout_of_the_client_applies(connection, timeout, status):
    assert connection.post(f"/validate-mpijob?timeout={timeout}", GOOD).status == status


@pytest.mark.parametrize("path", HOOKS)
def test_no_work_begins_after_the_deadline(path, monkeypatch):
    """Formerly, the service also processed requests of clients that no longer waited."""
    begun = []
    decode = review.decode
    monkeypatch.setattr(review_handler.review, "decode", lambda body: begun.append(body) or decode(body))
    with live() as service:
        response = service.post(f"{path}?timeout=1ns", GOOD)
        assert (response.status, response.body) == (504, b"no verdict within 8e-10 s\n")
        assert begun == []
        assert service.post(path, GOOD).status == 200
        assert len(begun) == 1


def test_request_delayed_beyond_its_deadline_is_not_processed(monkeypatch):
    with live() as service:
        handler = service.service.handler
        monkeypatch.setattr(handler, "_review_policy", pytest.fail)
        now = time.monotonic()
        request = Request(started=now, deadline=now + 60, hook="policy", body=GOOD)
        work = handler.answer(request)
        request.deadline = now
        assert asyncio.run(work).status == 504


def test_timeout_of_the_service_applies_if_it_is_shorter():
    with live(timeout_seconds=0.001) as service:
        response = service.post("/validate-mpijob?timeout=30s", GOOD)
        assert (response.status, response.body) == (504, b"no verdict within 0.0008 s\n")
        assert service.log("refused")[-1]["code"] == 504


class SlowCluster:
    """A cluster that answers when the test sets `over`."""

    def __init__(self):
        self.over = asyncio.Event()
        self.cancelled = 0
        self.asked = 0

    async def _wait(self):
        self.asked += 1
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def namespace(self, name):
        return Namespace(name, {})

    async def may_exempt(self, request, rules):
        await self._wait()
        return dict.fromkeys(rules, True)

    async def policy_impact(self, before, after, *, today, time_left):
        await self._wait()
        return ["it would change nothing"]


GPUS = {"requests.nvidia.com/gpu": 8}
QUOTA = quota_objects.quota(GPUS)
CACHED = Snapshot([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}])


def test_reviews_that_wait_for_the_cluster_do_not_block_other_reviews():
    """Formerly, 64 reviews that waited for a SubjectAccessReview blocked the service for all clients."""
    with live(max_in_flight=3) as service:
        service.service.handler.view = CACHED
        cluster = service.service.handler.cluster = SlowCluster()
        waiting = [service.connect() for _ in range(3)]
        for connection in waiting:
            body = exempting()
            connection.send(head("/validate-mpijob", content_length=str(len(body))), body)
        service.wait_until(lambda: cluster.asked == 3)
        assert service.post("/validate-mpijob", GOOD).status == 200
        more = service.post("/validate-mpijob", exempting())
        assert (more.status, more.body) == (503, b"too many reviews wait for the cluster\n")
        assert service.metric("shed_total", webhook="validate") == 1
        service.loop.call_soon_threadsafe(cluster.over.set)
        for connection in waiting:
            assert connection.receive().answer["allowed"] is True
            connection.close()


def test_cluster_query_gets_the_remaining_time_of_the_request():
    with live() as service:
        cluster = service.service.handler.cluster = SlowCluster()
        response = service.post("/validate-mpijob?timeout=1s", exempting())
        assert (response.status, response.body) == (504, b"no verdict within 0.8 s\n")
        assert (cluster.asked, cluster.cancelled) == (1, 1)
        assert service.metric("deadline_exceeded_total", webhook="validate") == 1


def test_unanswered_cluster_query_is_counted_and_logged():
    class Broken(SlowCluster):
        async def may_exempt(self, request, rules):
            raise ClusterError("it is away")

    with live() as service:
        service.service.handler.cluster = Broken()
        assert service.post("/validate-mpijob", exempting()).status == 503
        assert service.metric("cluster_errors_total", webhook="validate") == 1
        assert service.metric("shed_total", webhook="validate") == 0
        (line,) = service.log("refused")
        assert (line["code"], line["reason"]) == (503, "the cluster does not answer")
        assert service.metric("review_duration_seconds_count", webhook="validate") == 1


@pytest.mark.parametrize("usable", [True, False])
def test_quota_verdict_uses_the_ledger_and_falls_back_to_the_cache(usable):
    class Quotas(SlowCluster):
        @property
        def ledger(self):
            return self

        async def verdict(self, namespace, *, decide, first, writes, seconds):
            if not usable:
                raise ClusterError("it is away")
            return decide(quota_objects.cluster(QUOTA))

    with live() as service:
        service.service.handler.cluster = Quotas()
        service.service.handler.view = quota_objects.cluster(QUOTA, quota_objects.reserved("other", GPUS, 1))
        answer = service.post("/validate-mpijob", GOOD).answer
        assert answer["allowed"] is usable
        assert usable or "Quota exceeded" in answer["status"]["message"]


class Namespaces:
    """A cluster with an empty cache. Queries of a Namespace return `answer`."""

    def __init__(self, answer):
        self.answer = answer
        self.read = []

    async def namespace(self, name):
        self.read.append(name)
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.Event().wait()
        return Namespace(name, self.answer)


BY_LABELS = PolicySet(
    [
        layer("all", "rules: {worker-count: {max: 1, min: 1}}\nsshKeys: ed25519"),
        layer("some", "priority: 1\nnamespaces: {matchLabels: {tier: premium}}\nrules: {worker-count: {max: 64}}"),
    ]
)


@pytest.mark.parametrize(
    ("answer", "status", "outcome"),
    [
        ({}, 200, False),
        ({"tier": "premium"}, 200, True),
        (ApiError(404, "no"), 503, b"the namespace could not be read (404): no\n"),
        (ApiError(500, "no"), 503, b"the namespace could not be read (500): no\n"),
        (ClusterError("no"), 503, b"the namespace could not be read (no answer): no\n"),
        (None, 504, b"no verdict within 0.8 s\n"),
        (KeyError("a bug"), 500, b"a fault in the webhook service, see its log\n"),
    ],
)
def test_uncached_namespace_is_read_once_per_review(answer, status, outcome):
    with live() as service:
        handler = service.service.handler
        cluster = handler.cluster = Namespaces(answer)
        handler.policies = BY_LABELS
        response = service.post("/validate-mpijob?timeout=1s", GOOD)
        assert response.status == status
        assert (response.answer["allowed"] if status == 200 else response.body) == outcome
        assert len(cluster.read) == 1
        assert service.metric("cluster_errors_total", webhook="validate") == (status == 503)


@pytest.mark.parametrize(
    ("view", "body"),
    [(CACHED, GOOD), (NothingKnown(), GOOD.replace(b'"namespace":"team-a"', b'"namespace":""'))],
    ids=["cached", "cluster-wide object"],
)
def test_cached_or_absent_namespace_is_not_read(view, body):
    with live() as service:
        handler = service.service.handler
        cluster = handler.cluster = Namespaces(ClusterError("away"))
        handler.view = view
        assert service.post("/validate-mpijob", body).status == 200
        assert cluster.read == []
