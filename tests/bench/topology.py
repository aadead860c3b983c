"""Over how many racks the workers of a job are spread, with us and without: `python -m tests.bench.topology`.

The real API server, scheduler and operator, and nodes whose kubelets KWOK plays. The same jobs come one after the
other into an empty cluster, first as their users wrote them, then as the mutating hook leaves them. Each worker takes
the GPUs of a whole node, and all of them stay.
"""
# ruff: noqa: T201 - a command prints

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench import report
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import ends_in_words
from tests.controlplane.progress import Progress
from tests.support.placement import PER_RACK, RACK, delete_jobs, hosts, job, mutated, nodes
from webhook.admission import pipelines

# Workers of the jobs in the order in which they come: 190 of the 240 nodes with GPUs.
WORKERS = (4, 8, 10, 6, 16, 3, 10, 20, 5, 8, 12, 4, 10, 24, 6, 8, 10, 16, 4, 6)


@dataclass(frozen=True)
class Placed:
    """A job, and over how many racks its workers are spread."""

    workers: int
    without: int
    given: int

    @property
    def fewest(self) -> int:
        """The least that is possible, were the cluster empty."""
        return math.ceil(self.workers / PER_RACK)


def spans(cluster: Cluster, sizes: Sequence[int], *, with_us: bool, progress: Progress) -> list[int]:
    """Over how many racks each job is spread."""
    rack = {node["metadata"]["name"]: node["metadata"]["labels"][RACK] for node in nodes()}
    namespace = cluster.create_namespace()
    found = []
    for index, workers in enumerate(sizes):
        name = f"job-{index}"
        manifest = job(name, workers)
        manifest = mutated(manifest, cluster, pipelines.load_policy(None)) if with_us else manifest
        cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=manifest)
        found.append(len({rack[host] for host in hosts(cluster, namespace, name, workers)}))
        progress.say(f"{'with' if with_us else 'without'}: {name}, {workers} workers, {found[-1]} racks")
    delete_jobs(cluster, namespace)
    return found


def measure(sizes: Sequence[int], progress: Progress) -> list[Placed]:
    """Both runs in one cluster; ControlPlaneError if it cannot be built or started."""
    with Cluster() as cluster:
        cluster.start_scheduler()
        cluster.start_kwok(nodes())
        cluster.start_operator()
        without = spans(cluster, sizes, with_us=False, progress=progress)
        given = spans(cluster, sizes, with_us=True, progress=progress)
    return [Placed(*each) for each in zip(sizes, without, given, strict=True)]


def table(found: Sequence[Placed]) -> list[tuple[str, ...]]:
    """Jobs of one size in a row, and all of them."""
    rows: list[tuple[str, ...]] = [("workers", "jobs", "racks at least", "as written", "with what is injected")]
    for size in sorted({each.workers for each in found}):
        same = [each for each in found if each.workers == size]
        rows.append((str(size), str(len(same)), str(same[0].fewest), *_means(same)))
    fewest = sum(each.fewest for each in found) / len(found)
    return [*rows, ("all", str(len(found)), f"{fewest:.1f}", *_means(found))]


def _means(found: Sequence[Placed]) -> tuple[str, str]:
    return (
        f"{sum(each.without for each in found) / len(found):.1f}",
        f"{sum(each.given for each in found) / len(found):.1f}",
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.topology", description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/topology.md has it")
    arguments = parser.parse_args()
    with ends_in_words():
        found = measure(WORKERS, Progress())
    print((report.markdown if arguments.markdown else report.text)(table(found), left=0))


if __name__ == "__main__":
    main()
