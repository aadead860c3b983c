"""Compares the rule `limit-range` on jobs with the API server's LimitRanger on the pods and claims of these jobs.

Pods and claims are created with a server-side dry run in namespaces with one or more LimitRanges. The service must
predict the defaults that the API server fills in, whether it rejects the pod, and which limits it names. A pod with the
service's fix must be admitted. MPIJOB_LIMIT_RANGER_JOBS sets how many jobs are tried.
"""

import asyncio
import copy
import json
import os
import re
from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest

from tests.controlplane.cluster import Cluster
from tests.support.api_client import DRY_RUN, Client, at_a_time, client
from tests.support.worlds.quota_world import World
from tests.support.worlds.resource_pods import RUNTIME_CLASSES, Json, decoded, job, limit_range, template
from webhook.api import pod_resources
from webhook.api.bounds import Bound
from webhook.api.pod import PodTemplate
from webhook.api.pod_resources import PodResources
from webhook.api.quantity import Quantity
from webhook.cluster.resources.limit_ranges import CLAIM, CONTAINER, LIMIT_RANGES, POD, LimitRange
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.predict.job_pods import JobPods, job_pods
from webhook.predict.limit_ranges import OutOfBounds, faults
from webhook.rules import REGISTRY, Violation

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
APISERVER_FLAGS = ["--disable-admission-plugins=PodSecurity"]

JOBS = int(os.environ.get("MPIJOB_LIMIT_RANGER_JOBS", "300"))
NAMESPACES = 60
PLAIN = "plain"

RULE = REGISTRY["limit-range"]
Named = tuple[str, Bound, str]  # a limit of containers or of pods on a resource


async def make_namespaces(world: World) -> None:
    rng = Random(11)
    async with client(world.cluster) as api:
        for runtime_class in RUNTIME_CLASSES:
            await api.make("/apis/node.k8s.io/v1/runtimeclasses", runtime_class)
        for name in (PLAIN, *(f"n{index}" for index in range(NAMESPACES))):
            await api.make_namespace(name)
            ranges = 0 if name == PLAIN else rng.choice((1, 1, 2, 3))
            # The LimitRanges as the test creates them, without the API server's defaults.
            taken: list[Json] = []
            while len(taken) < ranges:
                made = limit_range(rng, f"range-{len(taken)}")
                status, reply, _ = await api.send("POST", f"/api/v1/namespaces/{name}/limitranges", made)
                assert status in {201, 422}, reply
                if status == 201:
                    taken.append({**made, "metadata": {**made["metadata"], "namespace": name}})
            world.objects[name] = taken
        await in_force(api)


async def in_force(api: Client) -> None:
    """Create one more LimitRange, and wait until the API server's LimitRanger has seen it."""
    await api.make_namespace("last")
    limits = [{"type": "Pod", "min": {"cpu": "1"}}]
    await api.make("/api/v1/namespaces/last/limitranges", {"metadata": {"name": "last"}, "spec": {"limits": limits}})
    await api.until_forbidden("last")


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> World:
    made = World(cluster)
    asyncio.run(make_namespaces(made))
    return made


def resources_of(pod: PodResources) -> tuple[Any, ...]:
    return (
        [(container.requests, container.limits) for container in pod.containers],
        pod_resources.requests(pod),
        pod_resources.limits(pod),
    )


def rounded(pod: PodResources) -> PodResources:
    """The pod as it is stored: the API server rounds the overhead of a RuntimeClass up."""
    return pod.with_overhead({name: Quantity(-(-amount // 10**6) * 10**6) for name, amount in pod.overhead.items()})


def stored(spec: Json) -> PodResources:
    return pod_resources.of_template(msgspec.convert({"spec": spec}, PodTemplate))


THEIRS = re.compile(r"(maximum|minimum) (\S+) usage per (\w+) is|([^\s\[]+) max limit to request ratio per (\w+) is")
WORDS = {"maximum": Bound.MAX, "minimum": Bound.MIN, "": Bound.RATIO}


def their_faults(message: str) -> set[Named]:
    """The limits in the API server's message, which names only the limits of the first exceeded LimitRange."""
    return {
        (kind or other_kind, WORDS[bound], name or other_name)
        for bound, name, kind, other_name, other_kind in THEIRS.findall(message)
    }


def our_faults(pods: JobPods, ranges: list[LimitRange]) -> tuple[set[Named], bool]:
    """The exceeded limits of containers and pods, and whether the pod is invalid for another reason."""
    problems = [*faults(pods.template, pods.resources, pods.disputed, ranges)]
    named = {(each.kind, each.bound, each.amounts.name) for each in problems if isinstance(each, OutOfBounds)}
    return {each for each in named if each[0] != CLAIM}, any(not isinstance(each, OutOfBounds) for each in problems)


def ranges_of(context: Context) -> list[LimitRange]:
    ranges = context.view.within(LIMIT_RANGES, context.namespace)
    assert ranges is not UNKNOWN
    return [*ranges.values()]


CHANGE = re.compile(r"(limits|requests)\[([^\]]+)\] to (\d\w*)")


def follow(template_: Json, path: str, violations: list[Violation]) -> Json | None:
    """The template with the service's fixes. It must have one container.

    None if a fix does not set a request or limit of this container.
    """
    fixed = copy.deepcopy(template_)
    container = fixed["spec"]["containers"][0]
    for violation in violations:
        changes = CHANGE.findall(violation.fix)
        if not violation.path.startswith(f"{path}.template.spec.containers[0].resources.") or not changes:
            return None
        for field_, name, amount in changes:
            container.setdefault("resources", {}).setdefault(field_, {})[name] = amount
    return fixed


class Comparison:
    def __init__(self, api: Client, world: World) -> None:
        self.api = api
        self.world = world
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []
        self.seen: Counter[tuple[str, Bound]] = Counter()

    async def post(self, namespace: str, spec: Json) -> tuple[int, Any]:
        body = {"metadata": {"name": "p"}, "spec": spec}
        status, reply, _ = await self.api.send("POST", f"/api/v1/namespaces/{namespace}/pods", body, **DRY_RUN)
        assert status in {201, 403, 422}, reply
        return status, reply

    async def job(self, namespace: str, templates: tuple[Json, Json]) -> None:
        context = self.world.context(namespace)
        made = decoded(job(*templates))
        violations = [*RULE.check(made, RULE.settings(), context)]
        for pods, submitted in zip(job_pods(made, context), templates, strict=True):
            # A pod that is invalid in a namespace without LimitRanges is an error of the generator.
            status, _ = await self.post(PLAIN, submitted["spec"])
            if status == 201:
                await self.pod(
                    context, pods, submitted, [each for each in violations if each.path.startswith(pods.path)]
                )
            else:
                self.counts["invalid as written"] += 1

    async def pod(self, context: Context, pods: JobPods, written: Json, violations: list[Violation]) -> None:
        status, reply = await self.post(context.namespace, written["spec"])
        self.counts["disputed" if pods.disputed else str(status)] += 1
        ours, spoiled = our_faults(pods, ranges_of(context))
        theirs = their_faults(reply["message"]) if status == 403 else set()
        problem = ""
        if status == 201 and (ours or spoiled):
            problem = "rejected only by the service"
        elif status == 201 and not pods.disputed:
            theirs_stored = stored(reply["spec"])
            if resources_of(theirs_stored) != resources_of(rounded(pods.resources)):
                problem = f"other resources: {pods.resources}, theirs {theirs_stored}"
        if status == 403:
            self.seen.update((kind, bound) for kind, bound, _ in theirs)
            assert theirs, reply
            expected = {each for each in theirs if each[2] not in pods.disputed}
            is_only_range = len(ranges_of(context)) == 1
            if spoiled or not (expected == ours if is_only_range else expected <= ours):
                problem = f"other limits, ours {ours}"
        if status == 422 and not (spoiled or pods.disputed):
            problem = "admitted only by the service"
        if problem:
            self.differences.append(
                f"{problem}\n{reply.get('message', '')}\n{json.dumps(written)}\n"
                f"{json.dumps(self.world.objects[context.namespace])}"
            )
        about_pods = [each for each in violations if ".volumes[" not in each.path]
        if bool(about_pods) != bool(ours or spoiled):
            self.differences.append(f"the rule reports {about_pods} instead of {ours}")
        await self.claims(context.namespace, pods, written, [each for each in violations if ".volumes[" in each.path])
        if about_pods and not pods.disputed and len(pods.resources.containers) == 1:
            await self.advice(context.namespace, pods, written, about_pods)

    async def claims(self, namespace: str, pods: JobPods, written: Json, violations: list[Violation]) -> None:
        for volume in written["spec"].get("volumes", ()):
            body = {"metadata": {"name": "c"}, **volume["ephemeral"]["volumeClaimTemplate"]}
            path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
            status, reply, _ = await self.api.send("POST", path, body, **DRY_RUN)
            assert status in {201, 403}, reply
            self.counts[f"claim {status}"] += 1
            if (status == 403) != bool(violations):
                self.differences.append(f"{reply}\n{violations}\n{json.dumps(self.world.objects[namespace])}")

    async def advice(self, namespace: str, pods: JobPods, written: Json, violations: list[Violation]) -> None:
        """Check that the API server admits the pod with the fix."""
        fixed = follow(written, pods.path, violations)
        if fixed is None:
            self.counts["no advice to follow"] += 1
            return
        status, reply = await self.post(namespace, fixed["spec"])
        self.counts["advice followed"] += 1
        # The fix adds the huge pages that a LimitRange requires, but not the CPU or memory that huge pages require.
        if status == 422 and "HugePages require cpu or memory" in reply["message"]:
            self.counts["advice that is incomplete"] += 1
        elif status != 201:
            advice = "\n".join(f"{each.path}: {each.message}. {each.fix}" for each in violations)
            self.differences.append(
                f"bad advice\n{advice}\n{reply['message']}\n{json.dumps(written)}\n{json.dumps(fixed)}\n"
                f"{json.dumps(self.world.objects[namespace])}"
            )


async def test_limit_range_verdicts_match_the_api_server(world: World) -> None:
    """The test compares defaults, rejections, limits and fixes for the launcher and worker of every job."""
    rng = Random(5)
    names = [name for name in world.objects if name != PLAIN]
    work = [(rng.choice(names), (template(rng), template(rng))) for _ in range(JOBS)]
    async with client(world.cluster) as api:
        comparison = Comparison(api, world)
        await at_a_time(work, lambda each: comparison.job(*each))
    counts = comparison.counts
    assert not comparison.differences, f"{len(comparison.differences)}:\n" + "\n\n".join(comparison.differences[:5])
    assert {*comparison.seen} == {(kind, bound) for kind in (CONTAINER, POD) for bound in Bound}
    for kind in ("201", "403", "422", "claim 201", "claim 403", "advice followed"):
        assert counts[kind] > 0.02 * JOBS, counts
    assert counts["invalid as written"] < 0.15 * 2 * JOBS, counts
    assert counts["advice that is incomplete"] < 0.01 * counts["advice followed"], counts
