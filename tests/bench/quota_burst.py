"""A thousand jobs at once in a namespace with a quota, on a real API server: `python -m tests.bench.quota_burst`.

Two replicas answer. First nothing is counted, then a quota has room for all jobs, and all are to be admitted; last the
namespace is full of pods, and jobs are to be refused by the quota within a second.
"""
# ruff: noqa: T201 - a command prints

import argparse
import json
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import repeat
from typing import Any

from tests.bench.machine import this_machine
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import sigterm_interrupts
from tests.support.installation.balancer import Balancer
from tests.support.installation.deployment import SELF_MANAGED, Deployment
from tests.support.installation.load import ADMITTED, Client
from tests.support.jobs import changed

SHARES = (0.5, 0.9, 0.99, 1.0)
LEDGER = "mpijob_webhook_quota_ledger_total"
LABELS = {"training.kubeflow.org/job-name": "whole", "training.kubeflow.org/job-role": "worker"}

Answer = tuple[str, float]
"""What the API server said, after how many seconds."""


def jobs_path(namespace: str) -> str:
    """Where jobs are created."""
    return f"/apis/kubeflow.org/v2beta1/namespaces/{namespace}/mpijobs"


def created(
    cluster: Cluster, path: str, bodies: Sequence[dict[str, Any]], clients: int, tries: int = 1
) -> list[Answer]:
    """The answer to each of these objects, by so many clients at once."""

    def create(number: int) -> list[Answer]:
        client = Client(cluster.kubeconfig, dry_run=False)
        answers = []
        for body in bodies[number::clients]:
            started = time.monotonic()
            for _ in range(tries):
                if (answer := client.create(path, json.dumps(body).encode())) == ADMITTED:
                    break
            answers.append((answer, time.monotonic() - started))
        client.close()
        return answers

    with ThreadPoolExecutor(clients) as pool:
        return [answer for answers in pool.map(create, range(clients)) for answer in answers]


def job(name: str, **changes: Any) -> dict[str, Any]:
    """A launcher and two workers that say what they need."""
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}}
    each = {f"{role}.template.spec.containers.0.resources": resources for role in ("Launcher", "Worker")}
    return changed({"metadata": {"name": name}, "Worker.replicas": 2, **each, **changes})


def namespace_with(cluster: Cluster, hard: dict[str, str]) -> str:
    """A new namespace with this quota, the status of which is there."""
    name = cluster.create_namespace("bench")
    metadata = {"name": "quota", "namespace": name}
    cluster.apply([{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}])
    cluster.wait_for(
        "the quota", lambda: cluster.get("resourcequota", "quota", "-n", name).get("status", {}).get("used")
    )
    return name


def burst(cluster: Cluster, jobs: int, clients: int, *, quota: bool) -> list[Answer]:
    """So many jobs where ten times as many would fit, or where nothing is counted."""
    ample = {"requests.cpu": str(jobs * 30), "pods": str(jobs * 30)}
    namespace = namespace_with(cluster, ample) if quota else cluster.create_namespace("bench")
    return created(cluster, jobs_path(namespace), [job(f"job-{number}") for number in range(jobs)], clients)


def full_of_pods(cluster: Cluster, pods: int, *, moving: bool) -> list[Answer]:
    """Jobs that come one by one beside so many pods, which are all that fit; when `moving`, a pod goes just before."""
    namespace = namespace_with(cluster, {"pods": str(pods)})
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=job("whole", **{"spec.runPolicy.suspend": True}))
    uid = cluster.get("mpijob", "whole", "-n", namespace)["metadata"]["uid"]
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "whole", "uid": uid, "controller": True}
    metadata = {"ownerReferences": [owner], "labels": LABELS}
    spec = job("x")["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    made = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": f"pod-{number}"}, "spec": spec}
        for number in range(pods)
    ]
    created(cluster, f"/api/v1/namespaces/{namespace}/pods", made, clients=8, tries=1000)
    time.sleep(10)  # until nothing moves any more
    answers = []
    for number in range(5):
        if moving:
            cluster.kubectl("delete", "pod", f"pod-{number}", "-n", namespace, "--force", "--grace-period=0")
        answers += created(cluster, jobs_path(namespace), [job(f"no-{number}", **{"Worker.replicas": 99})], clients=1)
    return answers


def measured(deployment: Deployment) -> Counter[str]:
    """The outcomes of the ledger and the processor time, summed up over the replicas."""
    found: Counter[str] = Counter()
    for backend in deployment.balancer.backends:
        with urllib.request.urlopen(f"{backend.ops_url}/metrics", timeout=10) as response:
            for line in response.read().decode().splitlines():
                name, _, value = line.partition(" ")
                if name.startswith(LEDGER + "{"):
                    found[name.split('"')[1]] += int(float(value))
                elif name == "process_cpu_seconds_total":
                    found["processor ms"] += int(float(value) * 1000)
    return found


def told(answers: list[Answer]) -> str:
    """The answers by what they are, and how long they took."""
    kinds = Counter(answer if answer == ADMITTED else _short(answer) for answer, _ in answers)
    times = sorted(seconds for _, seconds in answers)
    shares = (f"p{share * 100:g} {times[min(len(times) - 1, int(share * len(times)))]:.2f} s" for share in SHARES)
    return f"{dict(kinds)}; {', '.join(shares)}"


def _short(answer: str) -> str:
    return next(
        (words for words in ("Quota exceeded", "deadline exceeded", "unable to return") if words in answer), answer
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=250, help="that create them at once")
    parser.add_argument("--pods", type=int, default=2500, help="in the full namespace")
    options = parser.parse_args()
    with ExitStack() as stack:
        stack.enter_context(sigterm_interrupts())
        cluster = stack.enter_context(Cluster())
        deployment = Deployment(cluster, stack.enter_context(Balancer()))
        deployment.install()
        print(this_machine().summary)
        for _ in repeat(None, 2):
            deployment.start(*SELF_MANAGED)
        for quota in (False, True):
            before, started = measured(deployment), time.monotonic()
            answers = burst(cluster, options.jobs, options.clients, quota=quota)
            seconds = time.monotonic() - started
            where = "under a quota" if quota else "without a quota"
            print(f"{options.jobs} jobs {where} by {options.clients} clients in {seconds:.1f} s: {told(answers)}")
            print(f"  {dict(measured(deployment) - before)}", flush=True)
        for moving in (False, True) if options.pods else ():
            answers = full_of_pods(cluster, options.pods, moving=moving)
            print(f"beside {options.pods} pods{', which go' if moving else ''}: {told(answers)}", flush=True)
        for backend in list(deployment.balancer.backends):
            deployment.stop(backend)


if __name__ == "__main__":
    sys.exit(main())
