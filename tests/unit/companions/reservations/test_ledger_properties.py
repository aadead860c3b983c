"""Whatever happens, replicas together never admit more than a quota allows; where calls work, verdicts are right."""

import asyncio
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.quota_cluster import Cluster, Weather, document, workers_of
from tests.support.quota_replica import Replica
from tests.support.samples import sample
from tests.support.strategies import PROPERTY
from tests.support.virtual_time import run

LATE = 20.0  # seconds after which nobody waits for anything

Step = tuple[float, str, str, int, int]
"""When, what, the name of a job, how many workers, which replica."""

GAPS = st.one_of(st.floats(0, 0.05), st.floats(0, 0.5), st.floats(0, 8))
CHANGES = ["create"] * 6 + ["update"] * 3 + ["twice", "dry-run", "kill", "end", "stall", "large"]


def plans(what: list[str], names: str) -> st.SearchStrategy[list[Step]]:
    step = st.tuples(GAPS, st.sampled_from(what), st.sampled_from(names), st.integers(1, 4), st.integers(0, 3))
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
REPLICAS = st.integers(2, 4)
GPUS = st.integers(3, 8)


class Play:
    """Sends jobs to replicas, and does what else is asked for."""

    def __init__(self, cluster: Cluster, replicas: int) -> None:
        self.cluster = cluster
        self.how_many = replicas
        self.replicas: list[Replica] = []
        self.uids = 0
        self.refused: list[tuple[float, int]] = []
        """When, and how many workers."""
        self.undecided: list[str] = []

    async def run(self, plan: list[Step]) -> None:
        self.replicas = [Replica(self.cluster) for _ in range(self.how_many)]
        for gap, what, name, workers, where in plan:
            await asyncio.sleep(gap)
            await self.step(what, name, workers, where % self.how_many)
        await asyncio.sleep(LATE)
        for replica in self.replicas:
            await replica.kill()
        for task in self.cluster.tasks:
            if task.done():
                task.result()  # raises what is wrong with the test

    async def step(self, what: str, name: str, workers: int, where: int) -> None:
        replica, cluster = self.replicas[where], self.cluster
        match what:
            case "create" | "dry-run" | "large":
                size = workers + 4 if what == "large" else workers
                cluster.start(self.send(replica, name, size, dry_run=what == "dry-run"))
            case "twice":
                for each in (replica, self.replicas[where - 1]):
                    cluster.start(self.send(each, name, workers))
            case "update":
                if (old := cluster.jobs.get(name)) is not None and workers_of(old):
                    cluster.start(self.send(replica, name, workers, old=old))
            case "kill":
                await replica.kill()
                cluster.note("killed", where)
                self.replicas[where] = Replica(cluster)
            case "end":
                cluster.end(name)
            case "stall":
                replica.view.stall(8.0 * workers)
                cluster.note("stalled", where)

    async def send(self, replica: Replica, name: str, workers: int, *, old: Any = None, dry_run: bool = False) -> None:
        """Somebody applies a job."""
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


@settings(PROPERTY, max_examples=sample(100, 3000))
@given(SEEDS, WEATHERS, REPLICAS, GPUS, plans(CHANGES, "abcdefgh"))
def test_replicas_never_admit_more_than_the_quota_allows(
    seed: int, weather: Weather, replicas: int, gpus: int, plan: list[Step]
) -> None:
    cluster = Cluster(Random(seed), gpus, weather)
    run(Play(cluster, replicas).run(plan))
    assert not cluster.too_much, cluster.too_much


@settings(PROPERTY, max_examples=sample(60, 2000))
@given(SEEDS, REPLICAS, GPUS, plans(["create", "create", "dry-run", "large"], "a"))
def test_where_calls_work_nobody_is_refused_who_fits(seed: int, replicas: int, gpus: int, plan: list[Step]) -> None:
    """Nor does anybody wait in vain. Who is refused would not have fitted beside those that are admitted."""
    cluster = Cluster(Random(seed), gpus, Weather())
    play = Play(cluster, replicas)
    # Each job has another name: of two with one name the second holds its room until it is clear which one is stored.
    run(play.run([(gap, what, f"job-{at}", size, where) for at, (gap, what, _, size, where) in enumerate(plan)]))
    assert not play.undecided, "\n".join(cluster.told)
    for answered, workers in play.refused:
        most = max(taken for when, taken in [(0.0, 0), *cluster.history] if when <= answered + 1)
        assert most + workers > gpus, f"{workers} were refused at {answered}\n" + "\n".join(cluster.told)
