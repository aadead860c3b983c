"""Memory, start-up and cost per request by the size of the cluster: `python -m tests.bench.cluster_size`.

An API server of ours lists as many objects as it is told to, as a real one would write them. For each size a process of
its own fills the caches through the real client, then judges jobs, as the service does after reading a request. Cost
must not grow with the cluster; the last line has all jobs in one namespace.
"""
# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

from tests.bench.body import mutate_body, validate_body
from tests.bench.cluster_objects import PLACES, Listed, Size, collections, job, pages
from tests.bench.machine import this_machine
from tests.bench.report import text
from tests.support.logs import Log
from tests.support.loopback import ENDING, served
from webhook.admission import pipelines
from webhook.api import review
from webhook.client.connection import Connection
from webhook.client.live_view import LiveView
from webhook.cluster.view import ClusterView

SIZES = (10, 1_000, 10_000)
BODIES = 100
ROUNDS = 7
TOO_MANY = 1_000_000  # workers: their GPUs are more than the quotas have
MIB = 2**20
TODAY = date(2026, 3, 2)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one process found; times are of the processor."""

    objects: int
    unreadable: int
    start_seconds: float
    before_mib: float
    after_mib: float
    peak_mib: float
    gc_ms: float
    """How long a full collection of garbage stops everything, with the caches in it."""
    mutate_us: float
    validate_us: float
    refuse_us: float
    """The cost of a job that asks for more than the quota has."""
    denied: int
    warned: int
    refused: int
    """How many of those that ask for more than the quota has were refused."""

    @property
    def wrong(self) -> bool:
        """Whether the figures mean nothing."""
        return bool(self.unreadable or self.denied or self.refused < BODIES)


@contextmanager
def serving(found: Mapping[tuple[str, str], Listed]) -> Iterator[str]:
    """The URL of an API server with these collections, and no others."""

    async def handle(request: web.Request) -> web.StreamResponse:
        count, make = found.get((request.path, request.query.get("labelSelector", "")), (-1, bytes))
        if count < 0:
            return web.json_response({"kind": "Status", "code": 404, "message": "not found"}, status=404)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        with suppress(ConnectionResetError):  # whoever has seen enough ends in the middle
            await response.prepare(request)
            if "watch" in request.query:
                await request.app[ENDING].wait()
                return response
            start, limit = int(request.query.get("continue", 0)), int(request.query["limit"])
            for piece in pages(count, make, start, limit):
                await response.write(piece)
        return response

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    with served(app, shutdown_timeout=0.1) as url:
        yield url


async def measure(url: str, size: Size) -> Result:
    """Fill the caches from the API server at `url`, and judge jobs by them."""
    async with ApiClient(Configuration(host=url)) as api:
        log = Log()
        view = LiveView(Connection(api), log=log, places=PLACES)
        gc.collect()
        before = rss()
        began = time.process_time()
        running = asyncio.create_task(view.run())
        await view.settled()
        took = time.process_time() - began
        gc.collect()
        after = rss()
        began = time.process_time()
        gc.collect()
        paused = time.process_time() - began
        gc.freeze()
        jobs = [job(n, size.namespace(n), queued=n % 2 == 0) for n in range(size.jobs, size.jobs + BODIES)]
        mutated, _ = cost([review.decode(mutate_body(each)) for each in jobs], view, pipelines.mutate)
        judge = partial(pipelines.validate, today=TODAY)
        validated, found = cost([review.decode(validate_body(each)) for each in jobs], view, judge)
        for each in jobs:
            each["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = TOO_MANY
        refused, against = cost([review.decode(validate_body(each)) for each in jobs], view, judge)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    return Result(
        objects=sum(len(watch) for watch in view.watches),
        unreadable=sum(watch.store.skipped for watch in view.watches),
        start_seconds=took,
        before_mib=before,
        after_mib=after,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        gc_ms=paused * 1e3,
        mutate_us=mutated,
        validate_us=validated,
        refuse_us=refused,
        denied=sum(bool(each.denied) for each in found),
        warned=sum(bool(each.warned) for each in found),
        refused=sum(bool(each.denied) for each in against),
    )


def cost(requests: Sequence[Any], view: ClusterView, judge: Any) -> tuple[float, list[Any]]:
    """Processor time per request in microseconds, in the best of some rounds; the decisions."""
    policy = pipelines.load_policy(None)
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        found = [judge(request, policy=policy, view=view) for request in requests]
        best = min(best, time.process_time() - began)
    return best / len(requests) * 1e6, found


def rss() -> float:
    """MiB of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / MIB


def run(size: Size) -> Result:
    """Measure in a process of its own."""
    with serving(collections(size)) as url:
        command = [sys.executable, "-m", "tests.bench.cluster_size", "--measure", url]
        command += [str(size.jobs), str(size.namespaces)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return Result(**json.loads(done.stdout))


def table(results: Sequence[tuple[Size, Result]]) -> list[tuple[str, ...]]:
    """The headings and a line of cells for each size."""
    lines: list[tuple[str, ...]] = [
        ("jobs", "namespaces", "objects", "start CPU s", "memory MiB", "caches MiB", "peak MiB", "full GC ms",
         "mutate µs", "validate µs", "refuse µs")
    ]  # fmt: skip
    for size, found in results:
        figures = (found.start_seconds, found.after_mib, found.after_mib - found.before_mib, found.peak_mib)
        cells = (*figures, found.gc_ms, found.mutate_us, found.validate_us, found.refuse_us)
        counts = (size.jobs, size.namespaces, found.objects)
        digits = (1, 0, 1, 0, 0, 0, 0, 0)
        shown = (f"{value:,.{places}f}" for value, places in zip(cells, digits, strict=True))
        lines.append((*(f"{count:,}" for count in counts), *shown))
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cluster_size", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="JOBS", help="numbers of jobs")
    parser.add_argument("--measure", nargs=3, metavar=("URL", "JOBS", "NAMESPACES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        url, jobs, namespaces = arguments.measure
        print(json.dumps(asdict(asyncio.run(measure(url, Size(int(jobs), int(namespaces)))))))
        return
    sizes = [*map(Size.of, arguments.sizes), Size(max(arguments.sizes), 1)]
    results = [(size, run(size)) for size in sizes]
    print(f"{text(table(results), left=0)}\n\n{this_machine().summary}.")
    if any(found.wrong for _, found in results):
        sys.exit("Some objects could not be read, or jobs were judged wrongly: the figures mean nothing.")


if __name__ == "__main__":
    main()
