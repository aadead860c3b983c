"""Processor time of one review, for jobs made to be as costly as possible: `python -m tests.bench.hostile`.

A job of about 3 MB of each shape is created and updated, with both hooks, without a cluster and in a cluster with
objects of every kind. The limit on processor time applies. The results are processor time of this process, not
wall-clock time. The service does not decode objects that are too large. So each shape has a second job of the largest
size that the service decodes.
"""
# ruff: noqa: T201 - a command prints

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import Any, NamedTuple

from tests.bench.replies.cases import clusters
from tests.bench.report import text
from tests.support.hostile import SHAPES, strings
from tests.support.jobs import body
from webhook import work_limit
from webhook.admission import pipelines, too_large
from webhook.admission.pipelines import Hook
from webhook.api import review
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView
from webhook.policy.in_force import PolicySet
from webhook.server import review_handler
from webhook.server.process import PORTIONS
from webhook.work_limit import TooExpensive, limited

BYTES = 3_000_000
HOOKS: tuple[Hook, ...] = ("mutate", "validate")
POLICIES = PolicySet()


class Taken(NamedTuple):
    """The costliest review of a shape."""

    shape: str
    megabytes: float
    milliseconds: float
    review: str


def jobs(length: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, job) twice for every shape: with `length` bytes, and with the largest size that the service decodes."""
    for name, make in SHAPES.items():
        yield name, make(length)
        yield f"{name}, decoded", largest(make, length)
    for path, job in strings(1_000_000):
        yield f"a text in {path}", job


def costliest(name: str, job: dict[str, Any], views: dict[str, ClusterView]) -> Taken:
    """The costliest review of the job: creation or update, mutating or validating, with each of `views`."""
    job["metadata"]["namespace"] = "team-0000"
    older = json.loads(json.dumps(job))
    older["spec"]["slotsPerWorker"] = 5
    reviews = {"CREATE": body(job), "UPDATE": body(job, old=older)}
    times = {
        f"{operation} {hook}, {cluster_name}": _milliseconds(hook, data, view)
        for operation, data in reviews.items()
        for hook in HOOKS
        for cluster_name, view in views.items()
    }
    worst = max(times, key=lambda key: times[key])
    return Taken(name, len(reviews["CREATE"]) / 1e6, times[worst], worst)


def _milliseconds(hook: Hook, data: bytes, view: ClusterView) -> float:
    began = time.process_time()
    request = review.decode(data)
    decide = partial(pipelines.decide, hook, request, policies=POLICIES, view=view, today=date.min)
    policy = POLICIES.for_any_namespace()
    try:
        decision = limited(decide, review_handler._seconds(hook))
    except TooExpensive:
        decision = review_handler._too_expensive(hook, request, policy, view)
    review.encode(decision.response(request.uid))
    return (time.process_time() - began) * 1000


def largest(make: Callable[[int], dict[str, Any]], length: int) -> dict[str, Any]:
    """The largest job of this shape, up to `length` bytes."""
    least, most = 1, length
    while most > 1.05 * least:
        middle = (least * most) ** 0.5
        is_too_large = too_large.finding(review.decode(body(make(int(middle)))).object)
        least, most = (least, middle) if is_too_large else (middle, most)
    return make(int(least))


def main(arguments: list[str] | None = None) -> int:
    """Print the table, the costliest first. Returns 1 if a review took longer than allowed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bytes", type=int, default=BYTES, help="size of each job")
    parser.add_argument("--shape", default="", help="measure only shapes with this text in their name")
    parser.add_argument("--most", type=float, default=300, help="milliseconds that a review may take")
    parser.add_argument("--lines", type=int, default=20, help="number of lines in the table")
    chosen = parser.parse_args(arguments)
    gc.freeze()  # garbage collection as in the server
    gc.set_threshold(*PORTIONS)
    work_limit.arm()
    empty, full = clusters()
    views: dict[str, ClusterView] = {"nothing known": Snapshot(empty), "a cluster": Snapshot(full)}
    costliest("the first review costs more", SHAPES["env"](100), views)
    reviews = [costliest(name, job, views) for name, job in jobs(chosen.bytes) if chosen.shape in name]
    reviews.sort(key=lambda taken: -taken.milliseconds)
    lines = [(t.shape, t.review, f"{t.megabytes:.1f}", f"{t.milliseconds:,.0f}") for t in reviews[: chosen.lines]]
    print(text([("shape", "costliest review", "MB", "ms of processor"), *lines], left=2))
    return 1 if reviews and reviews[0].milliseconds > chosen.most else 0


if __name__ == "__main__":
    sys.exit(main())
