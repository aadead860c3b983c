"""The keys of jobs that have ended go, and no others, whatever happens meanwhile; and there is no call too many."""

import asyncio
from typing import Any

import pytest

from tests.support.logs import Log
from webhook.client.calls import ApiError, ClusterError
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.companions.limits import MAX_FAILED_REMOVALS
from webhook.companions.paced import PacedClient
from webhook.companions.reconciler import LAST_DELAY
from webhook.companions.ssh.removal import DENIALS, EVERY_SECONDS, KeyRemoval
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
        self.tried: list[str] = []
        self.failures: dict[str, Exception] = {}
        self.between = lambda: None
        self.time = NOW

    def now(self) -> float:
        return self.time

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


def job(name: str, condition: str | None = None, *, status: str = "True", **metadata: str) -> dict[str, Any]:
    conditions = [{"type": condition, "status": status}] if condition else []
    known = {"name": name, "namespace": "team-a", "uid": f"uid-{name}", **metadata}
    kind = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
    return {**kind, "metadata": known, "spec": {}, "status": {"conditions": conditions, "completionTime": ENDED}}


class World:
    """A removal, what it sees and what it says."""

    def __init__(self, api: Api, *jobs: dict[str, Any]) -> None:
        self.log = Log()
        made: Any = KeyRemoval
        view = Snapshot(jobs)
        self.removal: KeyRemoval = made(api=api, view=view, namespace="own", now=api.now, log=self.log)


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


LEFT = "SSH keys of ended jobs are left"


@pytest.mark.parametrize(
    "error", [ApiError(500, "oops"), ClusterError("the API server does not answer"), KeyError("metadata")]
)
async def test_what_cannot_be_deleted_is_tried_again_and_told_once(api: Api, error: Exception) -> None:
    api.failures["good"] = error
    world = World(api, job("good", "Succeeded"))
    for _ in range(5):
        await world.removal.sweep()
        api.time += LAST_DELAY
    assert api.attempts == 5
    [(level, event, told)] = world.log.lines
    assert (level, event, told["namespace"], told["job"]) == ("warning", LEFT, "team-a", "good")
    reason = told["reason"]
    assert reason.startswith("KeyError at ") if isinstance(error, KeyError) else reason == str(error)
    assert world.removal.problem == f"1 failed and will be tried again; the last: {reason}"
    assert world.removal.failing == 1
    api.failures.clear()
    await world.removal.sweep()
    assert world.log.told[1:] == ["SSH keys removed"]
    assert (world.removal.problem, world.removal.failing, world.removal.waiting) == ("", 0, 0)
    assert world.removal.results == {"failed": 5, "done": 1}


async def test_what_fails_is_tried_later_each_time_and_others_go_on(api: Api) -> None:
    """Each sweep asked again for every job that had ever failed."""
    api.failures["bad"] = ApiError(500, "oops")
    world = World(api, job("bad", "Failed"))
    pauses, last = [], NOW
    for _ in range(100):
        await world.removal.sweep()
        if api.attempts > len(pauses):
            pauses.append(api.time - last)
            last = api.time
        api.time += EVERY_SECONDS
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]
    world.removal._view = Snapshot([job("bad", "Failed"), job("good", "Succeeded")])
    await world.removal.sweep()
    assert api.deletions == ["secret-of-uid-good"]


async def test_where_everything_fails_a_sweep_soon_ends_and_begins_with_what_has_not_failed(api: Api) -> None:
    """Ten thousand jobs that had ended were ten thousand calls in each sweep, on each replica."""
    names = [f"job-{number}" for number in range(10 * MAX_FAILED_REMOVALS)]
    api.failures = dict.fromkeys(names, ApiError(500, "oops"))
    world = World(api, *(job(name, "Failed") for name in names))
    for sweep in range(1, 11):
        await world.removal.sweep()
        assert api.attempts == sweep * MAX_FAILED_REMOVALS
        assert world.removal.waiting == len(names) - api.attempts
    assert sorted(api.tried) == sorted(names)
    assert world.removal.failing == len(names)


async def test_without_an_answer_a_sweep_ends_at_once(api: Api) -> None:
    """Each call would take its whole time."""
    api.failures = dict.fromkeys(["good", "bad"], ClusterError("the API server does not answer"))
    world = World(api, job("good", "Succeeded"), job("bad", "Failed"))
    await world.removal.sweep()
    assert api.attempts == 1
    await world.removal.sweep()
    assert sorted(api.tried) == ["bad", "good"]


async def test_without_the_right_it_gives_up_and_says_so(api: Api) -> None:
    api.failures = dict.fromkeys(["good", "bad"], ApiError(403, "you may not"))
    world = World(api, job("good", "Succeeded"), job("bad", "Failed"))
    async with asyncio.timeout(10):
        await world.removal.run(every=0)
    assert api.attempts == DENIALS
    assert world.removal.problem == "the right to delete Secrets is missing, so SSH keys of ended jobs are left"
    assert world.removal.failing == 1
    assert world.log.told == [LEFT, "SSH keys are not removed any more"]


async def test_that_nothing_is_known_is_told_once(api: Api) -> None:
    world = World(api, job("good", "Succeeded"))
    known, world.removal._view = world.removal._view, NothingKnown()
    task = asyncio.create_task(world.removal.run(every=0))
    await until(lambda: world.removal.problem)
    for _ in range(10):
        await asyncio.sleep(0)
    reason = "it is not known which jobs have ended"
    assert (world.removal.problem, world.log.lines) == (reason, [("warning", LEFT, {"reason": reason})])
    assert api.attempts == 0
    world.removal._view = known
    await until(lambda: not world.removal.problem)
    assert api.deletions == ["secret-of-uid-good"]
    task.cancel()


async def test_calls_wait_for_their_turn(api: Api) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    caller: Any = api
    names = [f"job-{number}" for number in range(20)]
    for name in names:
        api.add(name)
    world = World(api, *(job(name, "Failed") for name in names))
    paced = PacedClient(caller, rate=10, burst=5, sleep=sleep, clock=lambda: 0.0)
    world.removal = KeyRemoval(api=paced, view=world.removal._view, namespace="own", now=api.now, log=world.log)
    await world.removal.sweep()
    assert len(api.deletions) == 20
    assert paced.requests == len(slept) + 5


async def until(condition: Any) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
