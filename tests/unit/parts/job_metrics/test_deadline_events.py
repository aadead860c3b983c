"""A notice says that the time limit of a job is near or has passed.

Each notice becomes exactly one Event, even if replicas restart or the API server fails.
"""

import asyncio
from typing import Any

import pytest

from tests.support.job_lives import HOUR, START, Seen, condition, kubernetes_job, mpijob
from tests.support.logs import Log
from tests.support.watch_api import until
from webhook.client.calls import ApiError, ClusterError
from webhook.controllers.reconciler import PacedClient
from webhook.parts.job_metrics.deadline_events import (
    EXISTED,
    IS_NEAR,
    IS_OVER,
    LAUNCHERS,
    UNKNOWN_WAIT,
    WRITTEN,
    DeadlineEvents,
)
from webhook.parts.job_metrics.telemetry import JOB_LIVES
from webhook.server.background import at_work

KEY = ("team-a", "train")
DAY = int(24 * HOUR)
RUNNING = mpijob("train", condition("Running"), started=START)
LAUNCHER = kubernetes_job(limit=DAY)


class Api:
    """A fake API server with Events and a clock. A request raises the first of `failures` and removes it."""

    def __init__(self) -> None:
        self.time = START
        self.events: dict[str, dict[str, Any]] = {}
        self.posts = 0
        self.failures: list[Exception] = []

    def now(self) -> float:
        return self.time

    async def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        await asyncio.sleep(0)
        assert method == "POST"
        self.posts += 1
        if self.failures:
            raise self.failures.pop(0)
        metadata = body["metadata"]
        assert path == f"/api/v1/namespaces/{metadata['namespace']}/events"
        if metadata["name"] in self.events:
            raise ApiError(409, "exists")
        self.events[metadata["name"]] = body
        return {}


class Replica:
    def __init__(self, api: Api) -> None:
        self.lives, self.launchers, self.log = Seen(JOB_LIVES), Seen(LAUNCHERS), Log()
        paced: Any = PacedClient(api, rate=1e9)  # type: ignore[arg-type]  # a fake with the methods that are called
        self.events = DeadlineEvents(api=paced, lives=self.lives, launchers=self.launchers, now=api.now, log=self.log)

    def see(self, job: dict[str, Any] = RUNNING, launcher: dict[str, Any] = LAUNCHER) -> None:
        self.lives.put(job)
        self.launchers.put(launcher)


@pytest.fixture
def api() -> Api:
    return Api()


async def test_event_refers_to_the_job(api: Api) -> None:
    replica = Replica(api)
    replica.see()
    api.time = START + 20 * HOUR - 2000
    assert await replica.events.reconcile(KEY) is None  # the next notice needs a change of the job
    ((name, event),) = api.events.items()
    assert name.startswith("train.")
    about = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train", "uid": "uid-train"}
    assert event["involvedObject"] == {**about, "namespace": "team-a"}
    assert (event["reason"], event["type"]) == (IS_NEAR, "Warning")
    assert event["message"].startswith("80 % of this job's time limit of 1d")
    assert replica.log.events("deadline told") == [{"namespace": "team-a", "job": "train", "reason": IS_NEAR}]


async def test_several_replicas_write_a_notice_only_once(api: Api) -> None:
    first, second = Replica(api), Replica(api)
    api.time = START + 0.8 * DAY
    for replica in (first, second, first):
        replica.see()
        await replica.events.reconcile(KEY)
    assert len(api.events) == 1
    assert api.posts == 2
    assert first.events.outcomes == {WRITTEN: 1, EXISTED: 0}
    assert second.events.outcomes == {WRITTEN: 0, EXISTED: 1}
    api.events.clear()  # the API server deletes Events after an hour
    api.time += HOUR
    await Replica(api).events.reconcile(KEY)
    for replica in (first, second):
        await replica.events.reconcile(KEY)
    assert api.events == {}


async def test_wait_ends_when_the_next_notice_is_due(api: Api) -> None:
    replica = Replica(api)
    replica.see(RUNNING, kubernetes_job(limit=1000))
    assert await replica.events.reconcile(KEY) == 300.0
    api.time += 790
    assert await replica.events.reconcile(KEY) == 10.0
    api.time += 10
    assert await replica.events.reconcile(KEY) is None
    assert [event["reason"] for event in api.events.values()] == [IS_NEAR]


@pytest.mark.parametrize("failure", [ApiError(403, "no right"), ApiError(500, "down"), ClusterError("no answer")])
async def test_failed_write_is_retried(api: Api, failure: Exception) -> None:
    replica = Replica(api)
    replica.see()
    api.time = START + 0.8 * DAY
    api.failures = [failure]
    with pytest.raises(type(failure)):
        await replica.events.reconcile(KEY)
    assert api.events == {}
    await replica.events.reconcile(KEY)
    assert len(api.events) == 1


async def test_job_gets_no_event_while_the_job_or_its_launcher_is_unknown(api: Api) -> None:
    replica = Replica(api)
    api.time = START + 0.8 * DAY
    assert await replica.events.reconcile(KEY) is None
    replica.lives.put(RUNNING)
    assert await replica.events.reconcile(KEY) is None
    replica.launchers.put(LAUNCHER)
    for watch in (replica.lives, replica.launchers):
        watch.known = False
        assert await replica.events.reconcile(KEY) == UNKNOWN_WAIT
        assert list(replica.events.remaining()) == []
        watch.known = True
    assert api.events == {}
    assert list(replica.events.remaining()) == [("team-a", 0.2 * DAY)]


async def test_resumed_job_gets_new_notices(api: Api) -> None:
    """If Kueue suspends a job and starts it again, the whole time limit applies again."""
    replica = Replica(api)
    replica.see()
    api.time = START + 0.8 * DAY
    await replica.events.reconcile(KEY)
    replica.see(
        {**RUNNING, "spec": {"runPolicy": {"suspend": True}}}, kubernetes_job(limit=DAY, suspend=True, started=None)
    )
    api.time += HOUR
    assert await replica.events.reconcile(KEY) is None
    resumed = api.time
    replica.see(mpijob("train", condition("Running"), started=resumed), kubernetes_job(limit=DAY, started=resumed))
    await replica.events.reconcile(KEY)
    assert len(api.events) == 1
    api.time = resumed + 0.8 * DAY
    await replica.events.reconcile(KEY)
    assert [event["reason"] for event in api.events.values()] == [IS_NEAR, IS_NEAR]


async def test_a_thousand_jobs_get_each_notice_once_while_one_of_two_replicas_is_replaced(api: Api) -> None:
    jobs = [mpijob(f"job-{number}", condition("Running"), started=START) for number in range(1000)]
    over = condition("Failed", reason="DeadlineExceeded")

    def see(replica: Replica, *, ended: bool) -> None:
        for number in range(1000):
            name = f"job-{number}"
            job = mpijob(name, over, started=START, completed=START + DAY) if ended else jobs[number]
            conditions = (condition("Failed"),) if ended else ()
            replica.see(job, kubernetes_job(f"{name}-launcher", *conditions, owner=f"uid-{name}", limit=DAY))

    first, second, third = (Replica(api) for _ in range(3))
    api.time = START + 0.8 * DAY
    async with at_work(first.events.reconciler.run):
        async with at_work(second.events.reconciler.run):
            for replica in (first, second):
                see(replica, ended=False)
            await until(lambda: len(api.events) > 300)
        await until(lambda: len(api.events) == 1000 and not first.events.reconciler.waiting)
        async with at_work(third.events.reconciler.run):
            api.time = START + DAY
            for replica in (first, third):
                see(replica, ended=True)
            await until(lambda: not (first.events.reconciler.waiting or third.events.reconciler.waiting))
    assert len(api.events) == 2000
    reasons = [event["reason"] for event in api.events.values()]
    assert (reasons.count(IS_NEAR), reasons.count(IS_OVER)) == (1000, 1000)
    assert api.posts <= 2 * 2000


async def test_deleted_job_is_removed_from_the_cache(api: Api) -> None:
    replica = Replica(api)
    replica.see()
    api.time = START + 0.8 * DAY
    await replica.events.reconcile(KEY)
    replica.lives.remove(RUNNING)
    await replica.events.reconcile(KEY)
    assert replica.events._written == {}
