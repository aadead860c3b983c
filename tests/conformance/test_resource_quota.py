"""Compares the service's quota computation with the API server's admission of pods, claims and other objects.

The pods, claims and other objects of a job are created with a server-side dry run in namespaces with quotas of every
scope and selector. The test sets the status of the quotas. The service must predict whether the API server rejects an
object, which quota rejects it, and the amounts in the message. In other namespaces, pods are created until the API
server rejects one, and the service must predict their number. MPIJOB_QUOTA_PODS sets how many pods are tried.

One difference is intended: while a quota has not counted a resource, the API server rejects every object ("status
unknown"). The service never rejects a job for an unknown fact.
"""

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from msgspec import structs

from tests.controlplane.cluster import Cluster
from tests.support.api_client import DRY_RUN, Client, at_a_time, client
from tests.support.worlds import quotas
from tests.support.worlds.quota_world import USUAL, World, full, in_force, make, make_world
from tests.support.worlds.quotas import DEFAULT_PRIORITY, Json, resource_quota, template
from tests.support.worlds.resource_pods import decoded, job
from webhook.api import quantity
from webhook.api.quota_charges import Charge
from webhook.api.quota_scopes import ClaimTraits
from webhook.cluster.resources.resource_quotas import ResourceQuota
from webhook.predict.quota.assessment import assess
from webhook.predict.quota.fit import Demand, RolePods, shortages

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
APISERVER_FLAGS = ["--disable-admission-plugins=PodSecurity"]

PODS = int(os.environ.get("MPIJOB_QUOTA_PODS", "1500"))
FILLED = 40

Verdict = tuple[str, str, frozenset[tuple[str, int]] | str]  # kind, quota, and the amounts or the message
UNKNOWN_STATUS = "status unknown"


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> World:
    """There are no controllers, because they would correct the status of the quotas."""
    made = World(cluster)
    asyncio.run(make_world(made))
    return made


FAILED = re.compile(r"failed quota: (\S+): (must specify .*)")
EXCEEDED = re.compile(r"exceeded quota: (\S+), requested: (\S+), used: \S+, limited: \S+")


def theirs(status: int, reply: Any) -> Verdict | None:
    """The API server's verdict; None if it is not about quotas."""
    message = reply.get("message", "")
    if status == 201:
        return "allowed", "", ""
    if match := FAILED.search(message):
        return "unstated", *match.groups()  # type: ignore[return-value]
    if match := EXCEEDED.search(message):
        pairs = (pair.rsplit("=", 1) for pair in match[2].split(","))
        return "exceeded", match[1], frozenset((name, int(quantity.parse(amount))) for name, amount in pairs)
    return (UNKNOWN_STATUS, "", "") if "status unknown for quota" in message else None


def ours(of: Iterable[ResourceQuota], charge: Charge, part: Any = None) -> set[Verdict]:
    """The service's verdicts on one object, one for each rejecting quota. The API server gives one of them."""
    of = [*of]
    counting = [quota for quota in of if quota.counts(charge.traits)]
    verdicts: set[Verdict] = set()
    for quota in counting if part is not None else ():
        if missing := quota.unstated(part.resources):
            names = [container.name for container in part.resources.containers]
            problems = (f"{name} for: {','.join(sorted({names[i] for i in each}))}" for name, each in missing.items())
            verdicts.add(("unstated", quota.name, f"must specify {'; '.join(problems)}"))
    if verdicts:
        return verdicts
    short = shortages(of, Demand((RolePods("Worker", 1, (charge,)),)))
    exceeded = {each.quota.name for each in short if each.missing + each.taken > each.hard}
    for name in exceeded:
        amounts = frozenset((each.resource, int(each.missing)) for each in short if each.quota.name == name)
        verdicts.add(("exceeded", name, amounts))
    return verdicts or {("allowed", "", "")}


class Comparison:
    def __init__(self, world: World, api: Client) -> None:
        self.world, self.api = world, api
        self.counts: Counter[str] = Counter()
        self.scopes: Counter[str] = Counter()
        self.differences: list[str] = []

    async def add(self, namespace: str, path: str, made: Json, expected: set[Verdict], kind: str) -> None:
        status, reply, _ = await self.api.send("POST", path.format(namespace), made, **DRY_RUN)
        verdict = theirs(status, reply)
        self.counts[f"{kind} {verdict[0] if verdict else 'refused otherwise'}"] += 1
        if verdict is None or verdict[0] == UNKNOWN_STATUS:
            return
        for quota in (each for each in self.world.objects[namespace] if each["metadata"]["name"] == verdict[1]):
            spec = quota["spec"]
            named = [("Exists", scope) for scope in spec.get("scopes", ())]
            named += [
                (e["operator"], e["scopeName"]) for e in spec.get("scopeSelector", {}).get("matchExpressions", ())
            ]
            self.scopes.update(f"{scope} {operator}" for operator, scope in named)
        if verdict not in expected:
            lines = (f"ours: {expected}", f"theirs: {verdict}", reply.get("message", ""), json.dumps(made))
            self.differences.append("\n".join((*lines, json.dumps(self.world.objects[namespace]))))

    async def pod(self, namespace: str, worker: Json) -> None:
        assessment = self.world.assessed(namespace, worker)
        [pod], [part] = assessment.pods, assessment.demand.parts
        body = {"metadata": {"name": "p"}, "spec": {**worker["spec"]}}
        expected = ours(assessment.quotas, part.charges[0], pod)
        await self.add(namespace, "/api/v1/namespaces/{}/pods", body, expected, "pod")
        templates = [volume["ephemeral"]["volumeClaimTemplate"] for volume in worker["spec"].get("volumes", ())]
        for claim, charge in zip(templates, part.charges[1:], strict=True):
            assert isinstance(charge.traits, ClaimTraits)
            body = {"metadata": {"name": "p-v"}, **claim}
            path = "/api/v1/namespaces/{}/persistentvolumeclaims"
            await self.add(namespace, path, body, ours(assessment.quotas, charge), "claim")

    def check(self) -> None:
        assert not self.differences, f"{len(self.differences)} differ:\n" + "\n\n".join(self.differences[:4])


async def compare(world: World, *, pods: int, seed: int) -> Comparison:
    rng = Random(seed)
    names = [name for name in world.objects if name.startswith("n")]
    work = [(rng.choice(names), template(rng)) for _ in range(pods)]
    async with client(world.cluster) as api:
        comparison = Comparison(world, api)
        await at_a_time(work, lambda each: comparison.pod(*each))
    return comparison


async def test_verdicts_on_pods_and_claims_match_the_api_server(world: World) -> None:
    """The quota and its amounts or missing resources match too. A quota of each scope rejects an object."""
    comparison = await compare(world, pods=PODS, seed=1)
    print(comparison.counts, comparison.scopes)  # noqa: T201
    comparison.check()
    for kind in ("pod allowed", "pod unstated", "pod exceeded", "claim allowed", "claim exceeded"):
        assert comparison.counts[kind] > 0.01 * PODS, comparison.counts
    operators = ("In", "NotIn", "Exists", "DoesNotExist")
    selectors = {
        f"{scope} {operator}" for scope in ("PriorityClass", "VolumeAttributesClass") for operator in operators
    }
    assert comparison.scopes.keys() == {f"{scope} Exists" for scope in quotas.POD_SCOPES} | selectors


OBJECTS: dict[str, tuple[str, Json]] = {
    "services": ("/api/v1/namespaces/{}/services", {"spec": {"clusterIP": "None"}}),
    "configmaps": ("/api/v1/namespaces/{}/configmaps", {}),
    "secrets": ("/api/v1/namespaces/{}/secrets", {}),
    "jobs.batch": (
        "/apis/batch/v1/namespaces/{}/jobs",
        {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}},
    ),
    "mpijobs.kubeflow.org": (
        "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs",
        {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": {"mpiReplicaSpecs": {}}},
    ),
}


async def test_verdicts_on_other_objects_match_the_api_server(world: World) -> None:
    """Each kind can be limited by two names, such as `services` and `count/services`."""
    names = [f"count/{kind}" for kind in OBJECTS] + [kind for kind in OBJECTS if "." not in kind]
    async with client(world.cluster) as api:
        comparison = Comparison(world, api)
        for index, resource in enumerate(names):
            await make(world, api, f"o{index}", [full(f"o{index}", resource)])
        await in_force(world, api, "last-full")
        for namespace in (f"o{index}" for index in range(len(names))):
            made = decoded(job({"spec": {}}, {"spec": {}}))
            assessment = assess(made, world.context(namespace))
            assert assessment is not None
            [whole] = assessment.demand.objects
            for kind, (path, body) in OBJECTS.items():
                usage = {name: amount for name, amount in whole.usage.items() if name in {kind, f"count/{kind}"}}
                expected = ours(assessment.quotas, Charge(whole.traits, usage))
                await comparison.add(namespace, path, {"metadata": {"name": "x"}, **body}, expected, kind)
    print(comparison.counts)  # noqa: T201
    comparison.check()
    assert {kind: comparison.counts[f"{kind} exceeded"] for kind in OBJECTS} == {
        kind: 1 if "." in kind else 2 for kind in OBJECTS
    }


async def test_number_of_pods_that_fit_matches_the_api_server(world: World) -> None:
    rng = Random(9)
    filled = 0
    async with client(world.cluster) as api:
        for index in range(FILLED):
            namespace = f"f{index}"
            made = [resource_quota(rng, namespace, f"q{number}") for number in range(rng.choice((1, 2, 3)))]
            await make(world, api, namespace, made)
        await in_force(world, api, "last-filled")
        for namespace in (f"f{index}" for index in range(FILLED)):
            worker = template(rng)
            assessment = world.assessed(namespace, worker, workers=30)
            [part] = assessment.demand.parts
            pods_only = replace(assessment, demand=Demand((structs.replace(part, charges=part.charges[:1]),)))
            if len(ours(assessment.quotas, part.charges[0], assessment.pods[0])) != 1 or not pods_only.shortages():
                continue
            created, status, reply = 0, 201, {}
            while created <= 30:
                body = {"metadata": {"name": f"p{created}"}, **worker}
                status, reply, _ = await api.send("POST", f"/api/v1/namespaces/{namespace}/pods", body)
                if status != 201:
                    break
                created += 1
            verdict = theirs(status, reply)
            if verdict is not None and verdict[0] == "exceeded":
                filled += 1
                fitting = min(pods_only.most_workers(each) for each in pods_only.quotas)
                assert created == fitting, (namespace, worker, world.objects[namespace], reply)
    assert filled > FILLED / 8, filled


async def test_verdicts_on_pods_without_a_priority_class_match_the_api_server(world: World) -> None:
    """These pods get the global default PriorityClass. This is the last test, because the class stays."""
    async with client(world.cluster) as api:
        await api.make("/apis/scheduling.k8s.io/v1/priorityclasses", USUAL)
        body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        async with asyncio.timeout(30):
            class_name = ""
            while class_name != DEFAULT_PRIORITY:
                _, reply, _ = await api.send("POST", "/api/v1/namespaces/n0/pods", body, **DRY_RUN)
                class_name = reply.get("spec", {}).get("priorityClassName", "")
    world.common.append(USUAL)
    comparison = await compare(world, pods=PODS // 8, seed=2)
    comparison.check()
    assert comparison.counts["pod exceeded"] > 0.01 * PODS // 8
