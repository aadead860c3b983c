"""From a job's creation to its stored SSH key, with the real API server and operator: `python -m tests.bench.ssh_keys`.

Both are seen by watches of this process, so the time from one to the other is the user's, to a few milliseconds.
"""
# ruff: noqa: T201 - a command prints

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.bench.machine import this_machine
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import guarded, sigterm_interrupts
from tests.support.installation import service
from tests.support.installation.ssh_secrets import stored, suspended

SHARES = (0.5, 0.9, 0.99, 1.0)


class Seen:
    """When each object of a kind in a namespace was first seen, by name."""

    def __init__(self, cluster: Cluster, resource: str, namespace: str) -> None:
        self.at: dict[str, float] = {}
        flags = ["--watch", "-o", r"jsonpath={.metadata.name}{'\n'}", "-n", namespace]
        command = guarded([cluster.assets.kubectl, "--kubeconfig", cluster.kubeconfig, "get", resource, *flags])
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.at.setdefault(line.strip(), time.monotonic())

    def close(self) -> None:
        """Stop watching."""
        self._process.terminate()
        self._process.communicate()
        self._reader.join()


@contextmanager
def watching(cluster: Cluster, resource: str, namespace: str) -> Iterator[Seen]:
    """A Seen that is closed at the end."""
    seen = Seen(cluster, resource, namespace)
    try:
        yield seen
    finally:
        seen.close()


def burst(cluster: Cluster, jobs: int, *, ready: int, rate: float) -> list[float]:
    """Seconds from job to key for so many jobs at once, sorted; a fresh service has `ready` pairs when they come."""
    namespace = cluster.create_namespace("bench")
    flags = ("--ssh-keys-ready", str(ready), "--ssh-keys-rate", str(rate))
    with service.running(cluster, *flags) as replica:
        level = f"mpijob_webhook_ssh_keys_ready {float(ready)}"
        cluster.wait_for("the stock", lambda: level in replica.ops("/metrics"), timeout=600)
        with watching(cluster, "mpijobs", namespace) as created, watching(cluster, "secrets", namespace) as keyed:
            items = [suspended(namespace, f"job-{number}") for number in range(jobs)]
            cluster.kubectl(
                "create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items}, timeout=600
            )
            cluster.wait_for("the keys", lambda: len(keyed.at) >= jobs and len(created.at) >= jobs, timeout=1800)
        metrics = replica.ops("/metrics")
    keys = [stored(secret) for secret in cluster.get("secrets", "-n", namespace)["items"]]
    ours = [key for key in keys if key.is_rsa_4096_pair()]
    refused = [
        line for line in metrics.splitlines() if line.startswith('mpijob_webhook_shed_total{webhook="ssh-keys"}')
    ]
    first, last = min(created.at.values()), max(keyed.at.values())
    print(f"{jobs} jobs, {ready} keys ready, {rate:g}/s ahead: {len({key.private for key in ours})} different RSA-4096")
    print(f"  pairs in {last - first:.1f} s; sent away to try again: {refused[0].split()[1] if refused else 0}")
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    return sorted(keyed.at[f"{name}-ssh"] - seen for name, seen in created.at.items())


def told(times: Sequence[float]) -> str:
    """The distribution of `times` in a line."""
    shown = (f"p{share * 100:g} {times[min(len(times) - 1, int(share * len(times)))]:.2f} s" for share in SHARES)
    return "  from job to stored key: " + ", ".join(shown).replace("p100", "max")


def main() -> None:
    """Print the distributions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000, help="in the longer run")
    arguments = parser.parse_args()
    with sigterm_interrupts(), Cluster() as cluster:
        cluster.start_operator()
        print(this_machine().summary)
        print(told(burst(cluster, 100, ready=128, rate=100)), flush=True)
        print(told(burst(cluster, 100, ready=0, rate=1)), flush=True)
        print(told(burst(cluster, arguments.jobs, ready=128, rate=100)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
