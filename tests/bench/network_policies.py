"""How long after a job is stored its NetworkPolicy is there, and its first pod.

`python -m tests.bench.network_policies`, on a real API server with the real operator: first one job after the other,
then many at once. All times are when a watch hears of the objects. The operator has upstream's own limits, 5 calls a
second, unless `--qps` gives it more.
"""
# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from tests.bench.machine import this_machine
from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import gpu_nodes
from tests.controlplane.process import sigterm_interrupts
from tests.support.installation import service
from tests.support.installation.load import ADMITTED, Client
from tests.support.jobs import changed
from tests.support.live_views import connected, running
from tests.support.logs import Log
from tests.support.policies import HEADER
from webhook.client.store import Kind, by_namespace
from webhook.client.watch import Watch

POLICY = HEADER + "rules: {network-policy: {posture: restricted}}\n"
JOBS = "/apis/kubeflow.org/v2beta1"
KINDS = {
    "job": f"{JOBS}/mpijobs",
    "policy": "/apis/networking.k8s.io/v1/networkpolicies",
    "pod": "/api/v1/pods",
}
JOB_NAME = "training.kubeflow.org/job-name"


class _Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata


class Heard:
    """When a watch first heard of a job, its NetworkPolicy and a pod of it, by the name of the job."""

    def __init__(self) -> None:
        self.times: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}

    def of(self, kind: str, key: tuple[str, str], old: object, new: Any) -> None:
        name = (new.labels or {}).get(JOB_NAME, key[1]) if new else ""
        if old is None and name:
            self.times[kind].setdefault(name.removeprefix("mpijob-"), asyncio.get_running_loop().time())

    def after_the_job(self, kind: str, names: list[str]) -> list[float]:
        """Milliseconds."""
        found, jobs = self.times[kind], self.times["job"]
        return [1000 * (found[name] - jobs[name]) for name in names if name in found]


def job(name: str) -> bytes:
    each = {
        f"{role}.template.spec.containers.0.resources": {"limits": {"cpu": "1m"}} for role in ("Launcher", "Worker")
    }
    return json.dumps(changed({"metadata": {"name": name}, "Worker.replicas": 2, **each})).encode()


def create(kubeconfig: Path, namespace: str, names: list[str]) -> None:
    client = Client(kubeconfig, dry_run=False)
    for name in names:
        assert (answer := client.create(f"{JOBS}/namespaces/{namespace}/mpijobs", job(name))) == ADMITTED, answer
    client.close()


def told(kind: str, found: list[float], of: int) -> str:
    if len(found) < 2:
        return f"{kind}: {len(found)} of {of}"
    middle, late = median(found), quantiles(found, n=100)[98]
    return f"{kind}: {len(found)} of {of}, median {middle:.0f} ms, p99 {late:.0f} ms, last {max(found):.0f} ms"


def report(title: str, heard: Heard, names: list[str]) -> None:
    before = [
        name
        for name in names
        if name in heard.times["pod"] and heard.times["pod"][name] < heard.times["policy"].get(name, float("inf"))
    ]
    print(f"{title}: {told('NetworkPolicy', heard.after_the_job('policy', names), len(names))}")
    print(
        f"  {told('first pod', heard.after_the_job('pod', names), len(names))}; {len(before)} pods before it",
        flush=True,
    )


async def measured(cluster: Cluster, options: argparse.Namespace) -> None:
    heard, namespace = Heard(), cluster.create_namespace("bench")
    decoder = msgspec.json.Decoder(_Object)

    def project(data: msgspec.Raw) -> _Metadata:
        return decoder.decode(data).metadata

    def watching(stack: AsyncExitStack, connection: Any, kind: str) -> Any:
        watch = Watch(Kind(kind, KINDS[kind], key=by_namespace, project=project), connection, log=Log())
        watch.store.on_change(partial(heard.of, kind))
        return watch

    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(connected(cluster.kubeconfig))
        watches = [watching(stack, connection, kind) for kind in KINDS]
        for watch in watches:
            await stack.enter_async_context(running(watch))
            await watch.settled()
        await asyncio.sleep(1)
        single = [f"single-{number}" for number in range(options.single)]
        for name in single:
            await asyncio.to_thread(create, cluster.kubeconfig, namespace, [name])
            await all_heard(heard.times["policy"], [name])
            await all_heard(heard.times["pod"], [name])
        report(f"{options.single} jobs, one after the other", heard, single)
        many = [f"many-{number}" for number in range(options.jobs)]
        shares = [many[start :: options.clients] for start in range(options.clients)]
        await asyncio.gather(*(asyncio.to_thread(create, cluster.kubeconfig, namespace, names) for names in shares))
        await all_heard(heard.times["policy"], many)
        report(f"{options.jobs} jobs at once", heard, many)


async def all_heard(found: Mapping[str, float], names: list[str]) -> None:
    async with asyncio.timeout(600):
        while not set(names) <= found.keys():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--single", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=20, help="that create them at once")
    parser.add_argument("--qps", type=int, default=5, help="of the operator")
    options = parser.parse_args()
    with sigterm_interrupts(), Cluster() as cluster, TemporaryDirectory() as folder:
        print(this_machine().summary)
        (policy := Path(folder) / "policy.yaml").write_text(POLICY)
        cluster.start_scheduler()
        cluster.start_kwok(gpu_nodes(8))
        cluster.start_operator(f"-kube-api-qps={options.qps}", f"-kube-api-burst={2 * options.qps}")
        with service.running(cluster, "--network-policies", "--policy", str(policy), register=False):
            asyncio.run(measured(cluster, options))


if __name__ == "__main__":
    main()
