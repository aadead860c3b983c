"""Only the SSH keys of ended jobs are removed, even if calls fail or jobs are created again. Few calls are made."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.kept_objects import KeptObjects
from tests.support.logs import Log
from tests.support.virtual_time import run
from webhook.client.calls import ApiError, ClusterError
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.controllers.reconciler import LAST_DELAY
from webhook.controllers.ssh.removal import ANNOTATION, DENIED_SECONDS, STORE_SECONDS, KeyRemoval
from webhook.server.background import at_work

ENDED = "2026-01-01T00:00:00Z"
NOW = 1_767_226_000.0  # 2026-01-01T00:06:40Z
JOBS = "/apis/kubeflow.org/v2beta1/namespaces/team-a/mpijobs"


class Api:
    """An API server with Secrets, jobs and a Lease.

    A deletion raises the exception that `failures` has for the job. `between` is called before each deletion that is
    not a dry run.
    """

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.jobs: dict[str, str] = {}
        self.lease: dict[str, Any] | None = None
        self.deletions: list[str] = []
        self.tried: list[str] = []
        self.failures: dict[str, Exception] = {}
        self.between = lambda: None

    def now(self) -> float:
        return NOW + asyncio.get_running_loop().time()

    def add(self, name: str, uid: str = "") -> None:
        self.jobs[name] = uid or f"uid-{name}"
        self.secrets[name] = f"secret-of-{self.jobs[name]}"

    async def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        name = path.rsplit("/", 1)[-1].removesuffix("-ssh")
        if "/leases" in path:
            if method == "GET":
                if self.lease is None:
                    raise ApiError(404, "not found")
                return self.lease
            self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
            return self.lease
        if method == "GET":
            assert path == f"/apis/kubeflow.org/v2beta1/namespaces/team-a/mpijobs/{name}"
            if name not in self.jobs:
                raise ApiError(404, "not found")
            return {"metadata": {"uid": self.jobs[name]}}
        assert (method, path) == ("DELETE", f"/api/v1/namespaces/team-a/secrets/{name}-ssh")
        self.tried.append(name)
        if name in self.failures:
            raise self.failures[name]
        if body != {"dryRun": ["All"]}:
            self.between()
        if name not in self.secrets:
            raise ApiError(404, "not found")
        uid = self.secrets[name]
        if body == {"dryRun": ["All"]}:
            return {"kind": "Status", "details": {"uid": uid}}
        if body["preconditions"]["uid"] != uid:
            raise ApiError(409, "the UID in the precondition does not match")
        del self.secrets[name]
        self.deletions.append(uid)
        return {}


def job(condition: str | None = None, *, status: str = "True", uid: str, ended: str = ENDED) -> dict[str, Any]:
    conditions = [{"type": condition, "status": status}] if condition else []
    kind = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
    return {**kind, "metadata": {"uid": uid}, "spec": {}, "status": {"conditions": conditions, "completionTime": ended}}


class World:
    """An API server, and one replica that removes keys, in virtual time."""

    def __init__(self, api: Api) -> None:
        self.api, self.log, self.cluster = api, Log(), KeptObjects()
        made: Any = KeyRemoval
        view = self.cluster.view([MPI_JOBS])
        self.removal: KeyRemoval = made(api=api, view=view, namespace="own", now=api.now, log=self.log)

    def put(self, name: str, *args: Any, uid: str = "", **kwargs: Any) -> None:
        """Put a job into the cache."""
        self.cluster.put(f"{JOBS}/{name}", job(*args, uid=uid or f"uid-{name}", **kwargs))


def after(scenario: Callable[[World], Awaitable[None]], api: Api, *ended: str) -> World:
    """Run `scenario` with a replica whose cache has these ended jobs, and return the world."""

    async def main() -> World:
        world = World(api)
        for name in ended:
            world.put(name, "Succeeded")
        async with at_work(world.removal.run):
            await asyncio.sleep(1)
            await scenario(world)
            await asyncio.sleep(1)
        return world

    return run(main())


async def nothing_more(_: World) -> None:
    pass


@pytest.fixture
def api() -> Api:
    made = Api()
    for name in ("new", "running", "restarting", "good", "bad"):
        made.add(name)
    return made


def test_keys_of_ended_jobs_are_removed(api: Api) -> None:
    async def scenario(world: World) -> None:
        world.put("new")
        world.put("running", "Running")
        world.put("restarting", "Failed", status="False")
        world.put("bad", "Failed")

    after(scenario, api, "good")
    assert sorted(api.secrets) == ["new", "restarting", "running"]


def test_each_secret_is_deleted_once(api: Api) -> None:
    async def scenario(world: World) -> None:
        world.put("good", "Succeeded", ended="2026-01-01T00:00:01Z")

    world = after(scenario, api, "good")
    assert (api.deletions, api.tried) == (["secret-of-uid-good"], ["good"] * 2)
    assert world.log.lines == [("info", "SSH keys removed", {"namespace": "team-a", "job": "good"})]


@pytest.mark.parametrize("during", [False, True])
def test_recreated_job_keeps_its_secret(api: Api, during: bool) -> None:
    """The cache still shows the ended job, but a new job with the same name already exists."""
    if during:
        api.between = lambda: api.add("good", "another")
    else:
        api.add("good", "another")
    world = after(nothing_more, api, "good")
    assert (api.deletions, api.secrets["good"]) == ([], "secret-of-another")
    assert world.log.lines == []


def test_recreated_job_that_ended_loses_its_secret(api: Api) -> None:
    async def scenario(world: World) -> None:
        api.add("good", "another")
        world.put("good", "Succeeded", uid="another")

    after(scenario, api, "good")
    assert api.deletions == ["secret-of-uid-good", "secret-of-another"]


def test_missing_secret_is_not_an_error(api: Api) -> None:
    api.secrets.clear()
    world = after(nothing_more, api, "good")
    assert (api.tried, world.log.lines) == (["good"], [])


def test_next_start_does_not_repeat_removals(api: Api) -> None:
    """Formerly, every start of the service sent a deletion for every ended job."""

    async def remembered(_: World) -> None:
        await asyncio.sleep(STORE_SECONDS)

    after(remembered, api, "good")
    assert api.lease is not None
    assert api.lease["metadata"]["annotations"] == {ANNOTATION: "2025-12-31T23:56:50Z"}
    api.lease["metadata"]["annotations"][ANNOTATION] = "2026-01-01T00:00:01Z"
    api.tried.clear()

    async def later(world: World) -> None:
        world.put("running", "Succeeded", ended="2026-01-01T00:00:02Z")
        await remembered(world)

    after(later, api, "good", "bad")
    assert api.deletions == ["secret-of-uid-good", "secret-of-uid-running"]
    # An earlier time never replaces a later time.
    assert api.lease["metadata"]["annotations"] == {ANNOTATION: "2026-01-01T00:00:01Z"}


def test_removals_are_repeated_if_progress_cannot_be_stored(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    request = api.request

    async def no_leases(method: str, path: str, body: Any = None) -> dict[str, Any]:
        if "/leases" in path:
            raise ApiError(403, "you may not")
        return await request(method, path, body)

    async def remembered(_: World) -> None:
        await asyncio.sleep(STORE_SECONDS)

    monkeypatch.setattr(api, "request", no_leases)
    after(remembered, api, "good")
    assert api.deletions == ["secret-of-uid-good"]


@pytest.mark.parametrize(
    "error", [ApiError(500, "oops"), ClusterError("the API server does not answer"), KeyError("metadata")]
)
def test_failed_removal_is_retried_without_blocking_other_removals(api: Api, error: Exception) -> None:
    api.failures["bad"] = error

    async def scenario(world: World) -> None:
        await asyncio.sleep(10 * STORE_SECONDS)
        assert api.lease is None, "the progress is not stored"
        assert world.removal.reconciler.failing == 1
        assert len(api.tried) < 12
        api.failures.clear()
        await asyncio.sleep(LAST_DELAY)

    world = after(scenario, api, "good", "bad")
    assert api.deletions == ["secret-of-uid-good", "secret-of-uid-bad"]
    assert world.removal.reconciler.failing == 0
    assert api.lease is not None


def test_few_removals_are_tried_without_permission(api: Api) -> None:
    """Each call adds a line to the audit log. All keys are removed after the permission is granted."""
    names = [f"job-{number}" for number in range(100)]
    for name in names:
        api.add(name)
    api.failures = dict.fromkeys(names, ApiError(403, "you may not"))

    async def scenario(world: World) -> None:
        await asyncio.sleep(DENIED_SECONDS / 2)
        assert len(api.tried) <= 8
        assert world.removal.reconciler.problem == "100 failed and will be tried again; the last: you may not"
        assert api.lease is None
        api.failures.clear()
        await asyncio.sleep(2 * DENIED_SECONDS)

    world = after(scenario, api, *names)
    assert len(api.deletions) == 100
    assert (world.removal.reconciler.failing, world.removal.reconciler.problem) == (0, "")
    assert api.lease is not None
