"""Latency of ordinary reviews during hostile reviews: `python -m tests.bench.beside_hostile`.

One client sends costly jobs of the maximum size, one after the other, to a real server. A second client sends the
example job every few milliseconds.
"""
# ruff: noqa: T201 - a command prints

import argparse
import http.client
import json
import ssl
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tests.bench.body import user_job, validate_body
from tests.bench.hostile import BYTES, largest
from tests.bench.machine import this_machine
from tests.bench.servers import Server, Servers
from tests.support.hostile import SHAPES
from tests.support.jobs import body

PAUSE = 0.01
HOOKS = ("validate-mpijob", "mutate-mpijob")


class Client:
    def __init__(self, server: Server, ca: Path) -> None:
        context = ssl.create_default_context(cafile=ca)
        self._connection = http.client.HTTPSConnection(server.address, context=context, timeout=30)

    def review(self, hook: str, sent: bytes) -> float:
        """Milliseconds until the whole reply has arrived."""
        began = time.perf_counter()
        self._connection.request("POST", f"/{hook}?timeout=10s", sent, {"Content-Type": "application/json"})
        self._connection.getresponse().read()
        return (time.perf_counter() - began) * 1000


def beside(server: Server, ca: Path, job: dict[str, Any], seconds: float) -> tuple[list[float], list[float]]:
    """The milliseconds of the ordinary reviews, and of the hostile reviews. Both lists are sorted."""
    older = json.loads(json.dumps(job))
    older["spec"]["slotsPerWorker"] = 5
    hostile, ordinary = [body(job), body(job, old=older)], validate_body(user_job(1))
    over, own, others = Event(), list[float](), list[float]()

    def attack() -> None:
        client = Client(server, ca)
        while not over.is_set():
            others.extend(client.review(hook, sent) for hook in HOOKS for sent in hostile)

    attacker = Thread(target=attack)
    attacker.start()
    client, until = Client(server, ca), time.monotonic() + seconds
    while time.monotonic() < until:
        own.append(client.review(HOOKS[0], ordinary))
        time.sleep(PAUSE)
    over.set()
    attacker.join()
    return sorted(own), sorted(others)


def main() -> int:
    """Print the table, with the worst shape first. Returns 1 if an ordinary review took longer than `--most`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3, help="seconds for each shape of job")
    parser.add_argument("--most", type=float, default=350, help="milliseconds that an ordinary review may take")
    parser.add_argument("--shape", default="", help="measure only shapes with this text in their name")
    parser.add_argument("--lines", type=int, default=10, help="number of lines in the table")
    chosen = parser.parse_args()
    print(this_machine())
    rows = []
    with tempfile.TemporaryDirectory() as folder, Servers(Path(folder), core=0) as servers:
        server = servers.service("hostile")
        for name in (name for name in SHAPES if chosen.shape in name):
            own, others = beside(server, servers.ca, largest(SHAPES[name], BYTES), chosen.seconds)
            rows.append((own[-1], name, own[len(own) // 2], others[-1]))
    rows.sort(reverse=True)
    print(f"{'beside':24}{'most ms':>9}{'median ms':>11}{'hostile ms':>12}")
    for most, name, median, hostile in rows[: chosen.lines]:
        print(f"{name:24}{most:>9.0f}{median:>11.1f}{hostile:>12.0f}")
    return int(rows[0][0] > chosen.most)


if __name__ == "__main__":
    sys.exit(main())
