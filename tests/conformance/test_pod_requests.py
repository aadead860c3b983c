"""Truth: what we count for a pod against what the API server's ResourceQuota admission counts for it.

The quota has nothing to give, so each pod is refused, with the API server's own numbers in the refusal. Namespaces
have LimitRanges with defaults or none, pods have RuntimeClasses with overhead or none.
MPIJOB_POD_REQUESTS_JOBS sets how many jobs are tried.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.api_client import DRY_RUN, Client, at_a_time, client
from tests.support.samples import sample
from tests.support.worlds.resource_pods import GPU, RUNTIME_CLASSES, Json, decoded, job, template
from webhook.api import quantity
from webhook.api.quantity import Quantity
from webhook.cluster.snapshot import Snapshot
from webhook.kit.context import Context
from webhook.predict.job_pods import JobPods, job_pods

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

JOBS = int(os.environ.get("MPIJOB_POD_REQUESTS_JOBS", sample(300, 1200)))

DEFAULTS = {"cpu": "300m", "memory": "96Mi", "ephemeral-storage": "1Gi"}
LIMIT_RANGES: dict[str, list[Json]] = {
    "plain": [],
    "defaults": [{"type": "Container", "default": DEFAULTS}],
    "requests": [{"type": "Container", "defaultRequest": {"cpu": "10m", "memory": "1Mi", GPU: 1}, "default": {GPU: 1}}],
    "max": [{"type": "Container", "max": {"cpu": "100", "memory": "1Ti"}, "min": {"cpu": "0", "memory": "0"}}],
}
REST = (
    *("ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"),
    *("hugepages-2Mi", "requests.hugepages-2Mi", f"requests.{GPU}", "requests.rdma/hca", "pods"),
)
# A quota for one of these wants it of every container, so there is a namespace without each.
NEEDED = ("requests.cpu", "limits.cpu", "requests.memory", "limits.memory")
QUOTAS = {
    "all": (*REST, *NEEDED, "cpu", "memory"),
    "rest": REST,
    **{name.replace(".", "-"): (name,) for name in NEEDED},
}


def hard(names: tuple[str, ...]) -> Json:
    return dict.fromkeys(names, "0")


async def make_namespaces(cluster: Cluster) -> None:
    async with client(cluster) as api:

        async def make(path: str, body: Json, method: str = "POST") -> Any:
            status, reply, _ = await api.send(method, path, body)
            assert status in {200, 201}, reply
            return reply

        for runtime_class in RUNTIME_CLASSES:
            await make("/apis/node.k8s.io/v1/runtimeclasses", runtime_class)
        for ranges, limits in LIMIT_RANGES.items():
            for quota, names in QUOTAS.items():
                name = f"{ranges}-{quota}"
                core = f"/api/v1/namespaces/{name}"
                await make("/api/v1/namespaces", {"metadata": {"name": name}})
                await make(f"{core}/serviceaccounts", {"metadata": {"name": "default"}})
                if limits:
                    await make(f"{core}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
                made = await make(f"{core}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard(names)}})
                # What the controller manager would do, which is not there.
                status = {"hard": hard(names), "used": hard(names)}
                await make(f"{core}/resourcequotas/q/status", {**made, "status": status}, "PUT")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    flags = ["--disable-admission-plugins=PodSecurity"]
    folder = tmp_path_factory.mktemp("pod-requests")
    with Cluster(controller_manager=False, apiserver_flags=flags, log_dir=folder) as running:
        asyncio.run(make_namespaces(running))
        yield running


def counted(pods: JobPods) -> dict[str, Quantity]:
    """What the pod uses up of a quota (`podComputeUsageHelper` in kubernetes `pkg/quota/v1/evaluator/core/pods.go`)."""
    used = {"pods": Quantity(quantity.NANO)}
    for name, amount in pods.requests.items():
        used[f"requests.{name}"] = amount
        if "/" not in name:
            used[name] = amount
    used |= {f"limits.{name}": amount for name, amount in pods.limits.items()}
    return {name: amount for name, amount in used.items() if amount}


def theirs(message: str) -> dict[str, Quantity] | None:
    """The API server's numbers; None where it wants a number that the pod has not got."""
    if "must specify" in message:
        return None
    found = re.search(r"exceeded quota: q, requested: (\S+), used:", message)
    assert found, message
    return {name: quantity.parse(amount) for name, amount in (pair.split("=") for pair in found[1].split(","))}


async def test_requests_and_limits(cluster: Cluster) -> None:
    """Launcher and worker of every job, to the last thousandth."""
    counts: Counter[str] = Counter()
    differences: list[str] = []
    rng = Random(7)
    work = [(rng.choice([*LIMIT_RANGES]), template(rng), template(rng)) for _ in range(JOBS)]

    async def compare(api: Client, namespace: str, pods: JobPods, spec: Json) -> None:
        for quota, names in QUOTAS.items():
            path = f"/api/v1/namespaces/{namespace}-{quota}/pods"
            status, reply, _ = await api.send("POST", path, {"metadata": {"name": "p"}, "spec": spec}, **DRY_RUN)
            if status == 422:
                counts["refused by validation"] += 1
                return
            if status == 201:
                found: dict[str, Quantity] | None = {}
            else:
                assert status == 403, reply
                found = theirs(reply["message"])
            if found is None:
                counts["needs a number"] += 1
                continue
            counts["compared"] += 1
            ours = {name: amount for name, amount in counted(pods).items() if name in names}
            if ours != found:
                differences.append(f"{namespace}-{quota}\nours:   {ours}\ntheirs: {found}\n{spec}")
            if quota == "all":
                counts["compared in whole"] += 1
                return

    async def compare_job(api: Client, namespace: str, *templates: Json) -> None:
        limits = [{"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": namespace}}]
        limits[0]["spec"] = {"limits": LIMIT_RANGES[namespace]}
        context = Context(namespace=namespace, view=Snapshot([*limits, *RUNTIME_CLASSES]))
        for pods, made in zip(job_pods(decoded(job(*templates)), context), templates, strict=True):
            assert pods.certain
            await compare(api, namespace, pods, made["spec"])

    async with client(cluster) as api:
        await at_a_time(work, lambda each: compare_job(api, *each))
    assert not differences, f"{len(differences)} differ:\n" + "\n\n".join(differences[:5])
    assert counts["compared in whole"] > 0.4 * 2 * JOBS, counts
    assert counts["refused by validation"] < 0.15 * 2 * JOBS, counts
