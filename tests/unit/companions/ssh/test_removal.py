"""The keys of jobs that have ended go, and no others, whatever happens meanwhile; and there is no call too many."""

import asyncio
from typing import Any

import pytest

from tests.support.logs import Log
from webhook.client.calls import ApiError, ClusterError
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.companions.ssh.removal import DENIALS, KeyRemoval
from webhook.companions.ssh.removed_until import ANNOTATION, NAME

ENDED = "2026-01-01T00:00:00Z"
NOW = 1_767_226_000.0  # 2026-01-01T00:06:40Z
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/own/leases/{NAME}"


class Api:
    """Secrets, jobs and a Lease; `failures` by name are raised, and `between` is called before a real deletion."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.jobs: dict[str, str] = {}
        self.lease: dict[str, Any] | None = None
        self.deletions: list[str] = []
        self.attempts = 0
        self.failures: dict[str, Exception] = {}
        self.between = lambda: None

    def now(self) -> float:
        return NOW

    def add(self, name: str, uid: str = "") -> None:
        """A job and its Secret are there."""
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
        self.attempts += 1
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


def job(name: str, condition: str | None = None, *, status: str = "True", **metadata: str) -> dict[str, Any]:
    conditions = [{"type": condition, "status": status}] if condition else []
    known = {"name": name, "namespace": "team-a", "uid": f"uid-{name}", **metadata}
    kind = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
    return {**kind, "metadata": known, "spec": {}, "status": {"conditions": conditions, "completionTime": ENDED}}


class World:
    """A removal, what it sees and what it says."""

    def __init__(self, api: Api, *jobs: dict[str, Any]) -> None:
        self.log = Log()
        self.given_up: list[str] = []
        made: Any = KeyRemoval
        view = Snapshot(jobs)
        self.removal: KeyRemoval = made(
            api=api, view=view, namespace="own", log=self.log, on_give_up=self.given_up.append
        )


@pytest.fixture
def api() -> Api:
    made = Api()
    for name in ("new", "running", "restarting", "good", "bad"):
        made.add(name)
    return made


async def test_only_the_keys_of_jobs_that_have_ended(api: Api) -> None:
    jobs = [
        job("new"),
        job("running", "Running"),
        job("restarting", "Failed", status="False"),
        job("good", "Succeeded"),
        job("bad", "Failed"),
    ]
    await World(api, *jobs).removal.sweep()
    assert sorted(api.secrets) == ["new", "restarting", "running"]


async def test_each_once(api: Api) -> None:
    world = World(api, job("good", "Succeeded"))
    await world.removal.sweep()
    await world.removal.sweep()
    assert (api.deletions, api.attempts) == (["secret-of-uid-good"], 2)
    assert world.log.lines == [("info", "SSH keys removed", {"namespace": "team-a", "job": "good"})]


async def test_a_job_made_again_under_the_name_keeps_its_secret(api: Api) -> None:
    """The cache still shows the job that ended; in truth another one has its name by now."""
    world = World(api, job("good", "Succeeded"))
    api.add("good", "another")
    await world.removal.sweep()
    assert (api.deletions, api.secrets["good"]) == ([], "secret-of-another")
    assert world.log.lines == []


async def test_a_job_made_again_during_the_sweep_keeps_its_secret(api: Api) -> None:
    world = World(api, job("good", "Succeeded"))
    api.between = lambda: api.add("good", "another")
    await world.removal.sweep()
    assert (api.deletions, api.secrets["good"]) == ([], "secret-of-another")


async def test_another_job_of_the_same_name_that_ended_too(api: Api) -> None:
    world = World(api, job("good", "Succeeded"))
    await world.removal.sweep()
    api.add("good", "another")
    world.removal._view = Snapshot([job("good", "Succeeded", uid="another")])
    await world.removal.sweep()
    assert api.deletions == ["secret-of-uid-good", "secret-of-another"]
    assert world.removal._done == {"another"}


async def test_what_is_gone_is_fine(api: Api) -> None:
    api.secrets.clear()
    world = World(api, job("good", "Succeeded"))
    await world.removal.sweep()
    await world.removal.sweep()
    assert api.attempts == 1
    assert world.log.lines == []


async def test_the_next_start_does_not_begin_again(api: Api) -> None:
    """Every start sent a deletion for every job that had ever ended."""
    await World(api, job("good", "Succeeded")).removal.sweep()
    assert api.lease is not None
    assert api.lease["metadata"]["annotations"] == {ANNOTATION: "2025-12-31T23:56:40Z"}
    api.lease["metadata"]["annotations"][ANNOTATION] = "2026-01-01T00:00:01Z"
    api.attempts = 0
    await World(api, job("good", "Succeeded"), job("bad", "Failed")).removal.sweep()
    assert api.attempts == 0
    later = job("running", "Succeeded")
    later["status"]["completionTime"] = "2026-01-01T00:00:02Z"
    await World(api, job("good", "Succeeded"), later).removal.sweep()
    assert api.deletions == ["secret-of-uid-good", "secret-of-uid-running"]
    # A later moment is never taken back.
    assert api.lease["metadata"]["annotations"] == {ANNOTATION: "2026-01-01T00:00:01Z"}


async def test_what_cannot_be_remembered_is_done_again_next_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    request = api.request

    async def no_leases(method: str, path: str, body: Any = None) -> dict[str, Any]:
        if "/leases" in path:
            raise ApiError(403, "you may not")
        return await request(method, path, body)

    monkeypatch.setattr(api, "request", no_leases)
    await World(api, job("good", "Succeeded")).removal.sweep()
    assert api.deletions == ["secret-of-uid-good"]


@pytest.mark.parametrize("error", [ApiError(500, "oops"), ClusterError("the API server does not answer")])
async def test_what_cannot_be_deleted_is_tried_again_and_told(api: Api, error: Exception) -> None:
    api.failures["good"] = error
    world = World(api, job("good", "Succeeded"))
    task = asyncio.create_task(world.removal.run(every=0))
    await until(lambda: api.attempts > DENIALS + 1)
    api.failures.clear()
    await until(lambda: world.log.told[-1] == "SSH keys removed")
    task.cancel()
    assert world.log.lines[0] == ("warning", "SSH keys of ended jobs are left", {"reason": str(error)})
    assert world.given_up == []


async def test_without_the_right_it_gives_up_and_says_so(api: Api) -> None:
    api.failures = dict.fromkeys(["good", "bad"], ApiError(403, "you may not"))
    world = World(api, job("good", "Succeeded"), job("bad", "Failed"))
    async with asyncio.timeout(10):
        await world.removal.run(every=0)
    assert api.attempts == DENIALS
    assert world.given_up == ["the right to delete Secrets is missing, so SSH keys of ended jobs are left"]
    assert world.log.told[-1] == "SSH keys are not removed any more"


async def test_nothing_is_known(api: Api) -> None:
    world = World(api)
    world.removal._view = NothingKnown()
    await world.removal.sweep()
    assert api.attempts == 0


async def until(condition: Any) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
