"""Random namespaces with ResourceQuotas. The status of these quotas does not change."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from tests.controlplane.cluster import Cluster
from tests.support.api_client import Client, client
from tests.support.kueue_objects import priority_class
from tests.support.limit_ranges import limit_range
from tests.support.worlds.quotas import DEFAULT_PRIORITY, PRIORITY_CLASSES, Json, resource_quota
from tests.support.worlds.resource_pods import RUNTIME_CLASSES, decoded, job
from webhook.cluster.snapshot import Snapshot
from webhook.kit.context import Context
from webhook.predict.quota.assessment import Assessment, assess

NAMESPACES = 120
NO_LIMITS = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "elsewhere"}}
HIGH = {**priority_class(PRIORITY_CLASSES[0]), "value": 9}
USUAL = HIGH | {"metadata": {"name": DEFAULT_PRIORITY}, "value": 1, "globalDefault": True}


@dataclass
class World:
    """The cluster, and the quotas and LimitRanges of each namespace. `common` has cluster-wide objects."""

    cluster: Cluster
    objects: dict[str, list[Json]] = field(default_factory=dict)
    common: list[Json] = field(default_factory=lambda: [*RUNTIME_CLASSES, NO_LIMITS, HIGH])

    def assessed(self, namespace: str, worker: Json, workers: int = 1) -> Assessment:
        """The assessment of a job that has workers and no launcher."""
        made = job({"spec": {}}, worker)
        del made["spec"]["mpiReplicaSpecs"]["Launcher"]
        made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
        assessment = assess(decoded(made), self.context(namespace))
        assert assessment is not None
        return assessment

    def context(self, namespace: str) -> Context:
        return Context(namespace=namespace, view=Snapshot([*self.objects[namespace], *self.common]))


def defaults(namespace: str) -> Json:
    """A LimitRange that sets all missing requests and limits of containers."""
    given = {"type": "Container", "default": {"cpu": "4", "memory": "4Gi"}, "defaultRequest": {"cpu": "300m"}}
    return limit_range("defaults", given, namespace=namespace)


async def make(world: World, api: Client, namespace: str, objects: Iterable[Json]) -> None:
    core = f"/api/v1/namespaces/{namespace}"
    await api.make_namespace(namespace)
    world.objects[namespace] = [*objects]
    for made in world.objects[namespace]:
        plural = f"{made['kind'].lower()}s"
        reply = await api.make(f"{core}/{plural}", made)
        if made["kind"] == "ResourceQuota":
            path = f"{core}/{plural}/{made['metadata']['name']}/status"
            status, reply, _ = await api.send("PUT", path, reply | {"status": made["status"]})
            assert status == 200, reply


def full(namespace: str, resource: str) -> Json:
    """A quota that is used up."""
    status = {"hard": {resource: "2"}, "used": {resource: "2"}}
    spec = {"hard": status["hard"]}
    metadata = {"name": "q", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec, "status": status}


async def in_force(world: World, api: Client, name: str) -> None:
    """Create one more quota, and wait until the API server's quota admission has seen it."""
    await make(world, api, name, [full(name, "pods")])
    await api.until_forbidden(name)


async def make_world(world: World) -> None:
    rng = Random(3)
    async with client(world.cluster) as api:
        for runtime_class in RUNTIME_CLASSES:
            await api.send("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime_class)
        for name in PRIORITY_CLASSES:
            await api.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", HIGH | {"metadata": {"name": name}})
        for name in (f"n{index}" for index in range(NAMESPACES)):
            made = [resource_quota(rng, name, f"q{index}") for index in range(rng.choice((1, 1, 2, 3)))]
            await make(world, api, name, [*made, *([defaults(name)] if rng.random() < 0.3 else [])])
        await in_force(world, api, "last")
