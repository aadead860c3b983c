"""Together, replicas never admit more than a quota allows. While API calls work, verdicts are also correct."""

import asyncio
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.quota_cluster import Cluster, Weather, document, workers_of
from tests.support.quota_replica import MOMENTS, Moment, Replica
from tests.support.strategies import PROPERTY
from tests.support.virtual_time import run
from webhook.controllers.reservations.limits import LIFETIME_SECONDS

CLOCKS = 4.0  # seconds by which two replicas' estimates of the API server's clock may differ
LATE = 20.0  # seconds after the last step, enough for every job to get its verdict

Step = tuple[float, str, str, int, int]
"""Seconds since the previous step, kind of step, name of a job, number of workers, number of the replica."""

GAPS = st.one_of(st.floats(0, 0.05), st.floats(0, 0.5), st.floats(0, 8))
CHANGES = ["create"] * 6 + ["update"] * 3 + ["twice", "dry-run", "kill", "end", "stall", "large"]


def plans(kinds: list[str], names: str) -> st.SearchStrategy[list[Step]]:
    step = st.tuples(GAPS, st.sampled_from(kinds), st.sampled_from(names), st.integers(1, 4), st.integers(0, 3))
    return st.lists(step, min_size=4, max_size=25)


WEATHERS = st.builds(
    Weather,
    call=st.sampled_from([0.02, 0.3, 2]),
    lag=st.sampled_from([0.02, 0.5, 3]),
    storing=st.sampled_from([0, 0.2, 1.5]),
    pod=st.sampled_from([0.1, 3]),
    failing=st.sampled_from([0, 10, 40]),
    slow=st.sampled_from([0, 5, 20]),
)
SEEDS = st.integers(0, 2**32)
GPUS = st.integers(3, 8)
# The difference between the clock of each replica and the API server's clock.
REPLICAS = st.lists(st.floats(-CLOCKS / 2, CLOCKS / 2), min_size=2, max_size=4)


class Play:
    """Sends jobs to replicas and runs the other steps of a plan."""

    def __init__(self, cluster: Cluster, ahead: list[float]) -> None:
        self.cluster = cluster
        self.ahead = ahead
        self.replicas: list[Replica] = []
        self.uids = 0
        self.refused: list[tuple[float, int]] = []
        """(time, number of workers) of each rejected job."""
        self.undecided: list[str] = []

    async def run(self, plan: list[Step]) -> None:
        self.replicas = [Replica(self.cluster, ahead=ahead) for ahead in self.ahead]
        for gap, kind, name, workers, where in plan:
            await asyncio.sleep(gap)
            await self.step(kind, name, workers, where % len(self.replicas))
        await asyncio.sleep(LATE)
        for replica in self.replicas:
            await replica.kill()
        for task in self.cluster.tasks:
            if task.done():
                task.result()  # raises an exception of the task

    async def step(self, kind: str, name: str, workers: int, where: int) -> None:
        replica, cluster = self.replicas[where], self.cluster
        match kind:
            case "create" | "dry-run" | "large":
                size = workers + 4 if kind == "large" else workers
                cluster.start(self.send(replica, name, size, dry_run=kind == "dry-run"))
            case "twice":
                for receiver in (replica, self.replicas[where - 1]):
                    cluster.start(self.send(receiver, name, workers))
            case "update":
                if (old := cluster.jobs.get(name)) is not None and workers_of(old):
                    cluster.start(self.send(replica, name, workers, old=old))
            case "kill":
                await replica.kill()
                cluster.note("killed", where)
                self.replicas[where] = Replica(cluster, ahead=self.ahead[where])
            case "end":
                cluster.end(name)
            case "stall":
                replica.view.stall(8.0 * workers)
                cluster.note("stalled", where)

    async def send(self, replica: Replica, name: str, workers: int, *, old: Any = None, dry_run: bool = False) -> None:
        self.uids += 1
        uid = f"uid-{self.uids}" if old is None else old["metadata"]["uid"]
        job = document(name, workers, uid)
        verdict = await replica.review(job, old, dry_run=dry_run)
        if verdict is None:
            self.undecided.append(name)
        elif verdict.denied:
            self.refused.append((self.cluster.time, workers))
            self.cluster.note("refused", name, workers)
        elif not dry_run:
            await self.cluster.admitted(job, old)


@settings(PROPERTY, max_examples=200)
@given(SEEDS, WEATHERS, REPLICAS, GPUS, plans(CHANGES, "abcdefgh"))
def test_replicas_never_admit_more_than_the_quota_allows(
    seed: int, weather: Weather, replicas: list[float], gpus: int, plan: list[Step]
) -> None:
    cluster = Cluster(Random(seed), gpus, weather)
    run(Play(cluster, replicas).run(plan))
    assert not cluster.too_much, cluster.too_much


@settings(PROPERTY, max_examples=60)
@given(SEEDS, REPLICAS, GPUS, plans(["create", "create", "dry-run", "large"], "a"))
def test_fitting_job_is_admitted_while_calls_work(
    seed: int, replicas: list[float], gpus: int, plan: list[Step]
) -> None:
    """Every job gets a verdict. A rejected job would exceed the quota together with the admitted jobs."""
    cluster = Cluster(Random(seed), gpus, Weather())
    play = Play(cluster, replicas)
    # The names of the jobs differ, because two jobs of one name both reserve quota until one of them is stored.
    run(play.run([(gap, kind, f"job-{at}", size, where) for at, (gap, kind, _, size, where) in enumerate(plan)]))
    assert not play.undecided, "\n".join(cluster.told)
    for answered, workers in play.refused:
        most = max(taken for when, taken in [(0.0, 0), *cluster.history] if when <= answered + 1)
        assert most + workers > gpus, f"{workers} were refused at {answered}\n" + "\n".join(cluster.told)


@settings(PROPERTY, max_examples=60)
@given(SEEDS, st.integers(1, 12), st.integers(0, 8), st.tuples(st.integers(1, 5), st.sampled_from(MOMENTS)), REPLICAS)
def test_replica_killed_at_any_step_blocks_jobs_only_briefly(
    seed: int, gpus: int, more: int, dies: Moment, ahead: list[float]
) -> None:
    """All fitting jobs are admitted, whether the replica was killed before or after its write."""
    cluster = Cluster(Random(seed), gpus, Weather())
    mortal: list[Replica] = []
    decided: list[tuple[float, bool]] = []

    async def sent_until_decided(number: int) -> None:
        await asyncio.sleep(cluster.random.uniform(0, 0.1))
        where = number % 2
        while True:
            replica = mortal[where]
            job = document(f"job-{number}", 1, f"uid-{number}-{cluster.time}")
            verdict = await replica.review(job, None) if not replica.killed.is_set() else None
            if verdict is not None:
                decided.append((cluster.time, verdict.denied == []))
                if not verdict.denied:
                    await cluster.admitted(job, None)
                return
            where = 1
            await asyncio.sleep(0.2)

    async def play() -> None:
        mortal.extend([Replica(cluster, dies=dies, ahead=ahead[0]), Replica(cluster, ahead=ahead[1])])
        await asyncio.gather(*(sent_until_decided(number) for number in range(gpus + more)))
        for replica in mortal:
            await replica.kill()

    run(play())
    assert not cluster.too_much, cluster.too_much
    assert sum(admitted for _, admitted in decided) == gpus, "\n".join(cluster.told)
    # This time includes the time until rejected or lost jobs are sent again.
    assert max(when for when, _ in decided) < LIFETIME_SECONDS
