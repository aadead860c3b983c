"""Processor time of one review, for jobs made to be as costly as possible: `python -m tests.bench.hostile`.

Each shape of job has about 3 MB, is created and updated, and goes through both hooks, where nothing of the cluster is
known and in a cluster with objects of every kind. What counts is the time of this process's processor, not the clock's.
With `--admitted` each shape is only as large as the rule `job-size` lets it be.
"""
# ruff: noqa: T201 - a command prints

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

from tests.bench.replies.cases import clusters
from tests.bench.report import text
from tests.support.hostile import SHAPES, strings
from tests.support.jobs import body
from webhook.admission import pipelines, too_large
from webhook.admission.pipelines import Hook
from webhook.api import mpijob, review
from webhook.api.shape import ShapeError
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import UNKNOWN, ClusterView
from webhook.kit.context import Context
from webhook.policy.in_force import PolicySet

BYTES = 3_000_000
HOOKS: tuple[Hook, ...] = ("mutate", "validate")
MOST_SECONDS = 5


class Taken(NamedTuple):
    """The costliest review of a shape."""

    shape: str
    megabytes: float
    milliseconds: float
    review: str


class _Stopped(Exception):
    """The review took too long to wait for."""


def _stop(*_: object) -> None:
    raise _Stopped


def jobs(length: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, job) of every shape."""
    for name, make in SHAPES.items():
        yield name, make(length)
    for path, job in strings(length * 2 // 3):
        yield f"a text in {path}", job


def admitted(length: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, job) of every shape, up to the size beyond which `job-size` would not have it judged."""
    for name, make in SHAPES.items():
        least, most = 1, length
        while most > 1.1 * least:
            middle = (least * most) ** 0.5
            least, most = (least, middle) if _too_large(make(int(middle))) else (middle, most)
        yield name, make(int(least))


def _too_large(job: dict[str, Any]) -> bool:
    request = review.decode(body(job))
    if too_large.unread(request.object):
        return True
    try:
        read = mpijob.apply_operator_defaults(mpijob.decode(request.object))
    except ShapeError:
        return False
    context = Context(namespace="team-a", document=request.object)
    return bool(too_large.findings(read, context, PolicySet().for_namespace(UNKNOWN)))


def costliest(name: str, job: dict[str, Any], views: dict[str, ClusterView]) -> Taken:
    """Of creating and updating the job, through both hooks, beside each view."""
    job["metadata"]["namespace"] = "team-0000"
    older = json.loads(json.dumps(job))
    older["spec"]["slotsPerWorker"] = 5
    reviews = {"CREATE": body(job), "UPDATE": body(job, old=older)}
    times = {
        f"{operation} {hook}, {known}": _milliseconds(hook, data, view)
        for operation, data in reviews.items()
        for hook in HOOKS
        for known, view in views.items()
    }
    worst = max(times, key=lambda key: times[key])
    return Taken(name, len(reviews["CREATE"]) / 1e6, times[worst], worst)


def _milliseconds(hook: Hook, data: bytes, view: ClusterView) -> float:
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        request = review.decode(data)
        decision = pipelines.decide(
            hook, request, policies=PolicySet(), view=view, today=date.min, time_left=lambda: float("inf")
        )
        review.encode(decision.response(request.uid))
    except _Stopped:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return (time.process_time() - began) * 1000


def main(arguments: list[str] | None = None) -> int:
    """Print the table, the costliest first; 1 if anything took longer than allowed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bytes", type=int, default=BYTES, help="size of each job")
    parser.add_argument("--shape", default="", help="only shapes with this in their name")
    parser.add_argument("--admitted", action="store_true", help="as large as job-size admits, at most that size")
    parser.add_argument("--most", type=float, default=300, help="milliseconds that a review may take")
    parser.add_argument("--lines", type=int, default=20, help="lines of the table")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGPROF, _stop)
    empty, full = clusters()
    views: dict[str, ClusterView] = {"nothing known": Snapshot(empty), "a cluster": Snapshot(full)}
    costliest("the first costs more", SHAPES["env"](100), views)
    made = admitted(chosen.bytes) if chosen.admitted else jobs(chosen.bytes)
    found = [costliest(name, job, views) for name, job in made if chosen.shape in name]
    found.sort(key=lambda each: -each.milliseconds)
    lines = [(t.shape, t.review, f"{t.megabytes:.1f}", f"{t.milliseconds:,.0f}") for t in found[: chosen.lines]]
    print(text([("shape", "costliest review", "MB", "ms of processor"), *lines], left=2))
    return 1 if found and found[0].milliseconds > chosen.most else 0


if __name__ == "__main__":
    sys.exit(main())
