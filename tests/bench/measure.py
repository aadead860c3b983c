"""One measurement: the load generator against one server, for some seconds."""

import json
import resource
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.bench.body import MARK
from tests.bench.machine import busy_seconds
from tests.bench.servers import Server, pinned
from tests.controlplane.process import ControlPlaneError, guarded

_requests = count(step=10**6)
"""Yields the number of the first request of each run. Two runs never have the same job."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """`bodies` has a review on each line. Each request has a new job.

    `rate` is in requests per second, independent of the replies. If it is None, each connection sends its next request
    as soon as it gets a reply.
    """

    path: str
    bodies: Path
    expect: str
    rate: int | None = None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The results of one measurement; latencies in ms."""

    requests: int
    """Correctly answered requests."""
    errors: int
    """The number of wrong and missing replies."""
    error: str
    """The first wrong reply."""
    seconds: float
    rps: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float
    cpu_micros: float
    """Processor time of the server for each request."""
    load_cpu: float
    """Cores used by the load generator."""
    others: float
    """Cores used by all other programs."""
    go: str


@dataclass(frozen=True, kw_only=True)
class Generator:
    """The load generator on a `core`. It measures for `seconds`, after a warm-up with the same load."""

    program: Path
    ca: Path
    core: int
    connections: int
    seconds: float

    @property
    def warmup(self) -> float:
        return min(1, self.seconds)

    def run(self, server: Server, load: Load) -> Sample:
        """Measure. Raises ControlPlaneError if the load generator fails."""
        flags = {
            "address": server.address,
            "ca": self.ca,
            "path": load.path,
            "bodies": load.bodies,
            "mark": MARK,
            "first": next(_requests),
            "expect": load.expect,
            "rate": load.rate or 0,
            "connections": self.connections,
            "seconds": self.seconds,
            "warmup": self.warmup,
        }
        command = guarded([self.program, *(f"-{name}={value}" for name, value in flags.items())])
        began, busy, before, loads = time.monotonic(), busy_seconds(), server.cpu_seconds, children_seconds()
        with pinned(self.core):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ControlPlaneError(f"{done.stderr.strip()}\n{server.program.tail()}")
        took = server.cpu_seconds - before
        others = (busy_seconds() - busy - took - (children_seconds() - loads)) / (time.monotonic() - began)
        return sample(json.loads(done.stdout), server_cpu=took, others=max(others, 0))


def children_seconds() -> float:
    """Processor time of all load generators that have exited."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def sample(result: Mapping[str, Any], *, server_cpu: float, others: float) -> Sample:
    """A sample from the load generator's output, the server's processor seconds, and cores of other programs."""
    same = ("requests", "errors", "seconds", "rps", "p50", "p90", "p99", "p999", "max", "go")
    return Sample(
        **{name: result[name] for name in same},
        error=result.get("error", ""),
        cpu_micros=server_cpu / result["sent"] * 1e6,
        load_cpu=result["cpu_seconds"] / result["seconds"],
        others=others,
    )


def positive(text: str) -> int:
    """A whole number of 1 or more, for argparse."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number
