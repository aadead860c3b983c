"""A simulated cluster in which replicas admit jobs with a common quota. Calls can be slow or fail, and watches lag.

A `Random` makes all decisions, and time is virtual. `Cluster.committed` is the number of GPUs of all admitted jobs.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from msgspec import Raw

from tests.support.jobs import changed
from tests.support.quota_objects import pods, quota
from webhook.api.mpijob import WORKER
from webhook.client.calls import ApiError, ClusterError
from webhook.client.limits import MAX_CALL_SECONDS
from webhook.client.wire import Page, PageMetadata
from webhook.cluster.resource import Resource
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS

Json = dict[str, Any]

TEAM = "team-a"
GPUS = "requests.nvidia.com/gpu"
EPOCH = 1_000_000.0
# Seconds.
REVIEW = 8.0  # maximum duration of a review
SLOW = 12.0  # maximum time of a slow call in each direction
WATCHED = (MPI_JOBS, PODS, RESERVATIONS, RESOURCE_QUOTAS)


@dataclass(frozen=True)
class Weather:
    """Maximum delays in seconds, and percentages of calls that fail or are slow."""

    call: float = 0.02
    lag: float = 0.1
    storing: float = 0.5
    """Time from the verdict until the job is stored."""
    pod: float = 0.5
    """Time between the creation of two pods of a job."""
    failing: int = 0
    slow: int = 0
    """Percentage of slow calls."""


@dataclass
class Cluster:
    """The API server, the operator and users. A worker needs one GPU, and the quota allows `gpus` GPUs."""

    random: Random
    gpus: int
    weather: Weather
    leases: dict[str, Json] = field(default_factory=dict)
    jobs: dict[str, Json] = field(default_factory=dict)
    made: dict[str, Json] = field(default_factory=dict)
    used: int = 0
    watching: list[Callable[[Resource[Any, Any], Json, str], None]] = field(default_factory=list)
    """Functions that are called for each change."""
    in_flight: list[tuple[Json, Json | None]] = field(default_factory=list)
    """Admitted jobs that are not stored yet, each with the stored job that it replaces."""
    history: list[tuple[float, int]] = field(default_factory=list)
    """(time, committed amount)."""
    told: list[str] = field(default_factory=list)
    too_much: str = ""
    """The events until the quota was exceeded; empty if it was not."""
    version: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    # Admitted jobs.

    @property
    def committed(self) -> int:
        """The GPUs of stored and admitted jobs."""
        most = Counter({name: workers_of(job) for name, job in self.jobs.items()})
        for job, base in self.in_flight:
            name = job["metadata"]["name"]
            if self.jobs.get(name) is base:  # the API server rejects an update if the stored job has changed
                most[name] = max(most[name], workers_of(job))
        return most.total()

    def note(self, *words: object) -> None:
        self.told.append(" ".join(map(str, (round(self.time, 3), *words, f"[{self.committed} of {self.gpus}]"))))
        self.history.append((self.time, self.committed))
        if self.committed > self.gpus and not self.too_much:
            self.too_much = "\n".join(self.told)

    @property
    def time(self) -> float:
        return asyncio.get_running_loop().time()

    def start(self, work: Any) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self.tasks.add(task)
        return task

    async def admitted(self, job: Json, base: Json | None) -> None:
        """The API server stores the job. If the stored version has changed meanwhile, the API server drops the job."""
        name, workers = job["metadata"]["name"], workers_of(job)
        self.in_flight.append((job, base))
        self.note("admitted", name, workers)
        await asyncio.sleep(self.random.uniform(0, self.weather.storing))
        self.in_flight.remove((job, base))
        if self.jobs.get(name) is not base:
            self.note("not stored", name, workers)
            return
        self.jobs[name] = job
        self.changed(MPI_JOBS, job)
        self.note("stored", name, workers)
        if base is None:
            self.start(self.operate(name))

    async def operate(self, name: str) -> None:
        """Create the pods of a job one after the other, and more pods when the job is scaled up."""
        there = 0
        while not (job := self.jobs[name]).get("status"):
            await asyncio.sleep(self.random.uniform(0, self.weather.pod))
            if there < workers_of(job):
                self.used += 1
                self.changed(RESOURCE_QUOTAS, self.quota)
                await asyncio.sleep(self.random.uniform(0, 0.02))
                pod = pods(name, there + 1, TEAM)[-1]
                pod["metadata"]["ownerReferences"][0]["uid"] = job["metadata"]["uid"]
                self.made[pod["metadata"]["name"]] = pod
                there += 1
                self.changed(PODS, pod)
        for index in range(there):
            await asyncio.sleep(self.random.uniform(0, 0.1))
            self.changed(PODS, self.made.pop(f"{name}-worker-{index}"), "DELETED")
            await asyncio.sleep(self.random.uniform(0, 0.1))
            self.used -= 1
            self.changed(RESOURCE_QUOTAS, self.quota)

    def end(self, name: str) -> None:
        if name in self.jobs:
            done = {"completionTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Succeeded", "status": "True"}]}
            self.jobs[name] = {**self.jobs[name], "status": done}
            self.changed(MPI_JOBS, self.jobs[name])
            self.note("done", name)

    @property
    def quota(self) -> Json:
        return quota({GPUS: self.gpus}, {GPUS: self.used}, namespace=TEAM)

    # The API server.

    def changed(self, resource: Resource[Any, Any], document: Json, event: str = "MODIFIED") -> None:
        for tell in self.watching:
            tell(resource, document, event)

    def objects(self, resource: Resource[Any, Any]) -> list[Json]:
        if resource is RESOURCE_QUOTAS:
            return [self.quota]
        return [*{MPI_JOBS: self.jobs, PODS: self.made, RESERVATIONS: self.leases}[resource].values()]

    async def list_page(self, target: str, *, metadata_only: bool = False) -> Page[Raw]:
        plural = target.partition("?")[0].rsplit("/", 1)[-1]
        [resource] = [each for each in WATCHED if each.plural == plural]
        return await self.call(
            lambda: Page(PageMetadata("7"), [Raw(json.dumps(each).encode()) for each in self.objects(resource)])
        )

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        return await self.call(lambda: {"GET": self.read, "DELETE": self.delete}.get(method, self.write)(path, body))

    def read(self, path: str, _: Any) -> Json:
        if path not in self.leases:
            raise ApiError(404, "not found")
        return self.leases[path]

    def delete(self, path: str, body: Any) -> Json:
        if body["preconditions"]["resourceVersion"] != self.read(path, body)["metadata"]["resourceVersion"]:
            raise ApiError(409, "changed")
        gone = self.leases.pop(path)
        self.changed(RESERVATIONS, gone, "DELETED")
        return gone

    def write(self, path: str, body: Any) -> Json:
        name, version = body["metadata"]["name"], body["metadata"]["resourceVersion"]
        path = path.removesuffix(f"/{name}") + f"/{name}"
        if path in self.leases and self.leases[path]["metadata"]["resourceVersion"] != version:
            raise ApiError(409, "changed")
        # An API server also creates a Lease by PUT, if the old Lease was deleted.
        self.version += 1
        metadata = {"namespace": "own", **body["metadata"], "resourceVersion": str(self.version)}
        self.leases[path] = {**body, "metadata": metadata}
        self.changed(RESERVATIONS, self.leases[path])
        return self.leases[path]

    async def call(self, work: Callable[[], Any]) -> Any:
        """Do `work` after a delay. The caller does not get the result after a timeout or a lost connection."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def arrive() -> None:
            result: Any
            try:
                result = work()
            except ApiError as error:
                result = error
            loop.call_later(back, lambda: answer.done() or answer.set_result(result))

        there, back = (
            self.random.uniform(0, SLOW if self.random.randrange(100) < self.weather.slow else self.weather.call)
            for _ in range(2)
        )
        fails = self.random.randrange(100) < self.weather.failing
        if fails and self.random.random() < 0.3:
            await asyncio.sleep(there)
            raise ApiError(500, "oops")
        if fails:  # the connection is lost, but the request may arrive later
            loop.call_later(self.random.uniform(0, there + back), lambda: answer.done() or answer.set_result(None))
        loop.call_later(there, arrive)
        try:
            async with asyncio.timeout(MAX_CALL_SECONDS):
                result = await answer
        except TimeoutError:
            result = None
        if result is None:
            raise ClusterError("cut off")
        if isinstance(result, ApiError):
            raise result
        return result


def document(name: str, workers: int, uid: str) -> Json:
    job = changed(
        {"Worker.replicas": workers, "Worker.template.spec.containers.0.resources.limits": {"nvidia.com/gpu": 1}}
    )
    return {**job, "metadata": {"name": name, "namespace": TEAM, "uid": uid}}


def workers_of(job: Json | None) -> int:
    """The number of workers; 0 for a finished job."""
    return 0 if job is None or job.get("status") else job["spec"]["mpiReplicaSpecs"][WORKER]["replicas"]
