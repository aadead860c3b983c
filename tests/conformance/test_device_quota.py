"""The service computes how device claims count in ResourceQuotas. The tests compare this with a real API server."""

import asyncio
import re
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.api_client import DRY_RUN, client
from tests.support.devices import claim_template, exactly
from tests.support.worlds.quota_world import World, in_force, make
from webhook.api import quantity
from webhook.cluster.snapshot import Snapshot
from webhook.kit.context import Context
from webhook.predict.devices import charges

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

Json = dict[str, Any]

NAMESPACE = "devices"
CLASSES = ("gpu.nvidia.com", "mig.nvidia.com")
COUNTED = ("count/resourceclaims.resource.k8s.io", *(f"{name}.deviceclass.resource.k8s.io/devices" for name in CLASSES))
EXCEEDED = re.compile(r"exceeded quota: q, requested: (\S+), used: ")


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> World:
    """There are no controllers, because they would correct the status of the quota."""
    made = World(cluster)
    asyncio.run(use_up_quota(made))
    return made


async def use_up_quota(world: World) -> None:
    hard = dict.fromkeys(COUNTED, "0")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": NAMESPACE}}
    async with client(world.cluster) as api:
        await make(world, api, NAMESPACE, [{**quota, "spec": {"hard": hard}, "status": {"hard": hard, "used": hard}}])
        metadata = {"name": NAMESPACE, "labels": {"resource.kubernetes.io/admin-access": "true"}}
        status, reply, _ = await api.send("PUT", f"/api/v1/namespaces/{NAMESPACE}", {"metadata": metadata})
        assert status == 200, reply
        await in_force(world, api, "last")


def first(*choices: Json) -> Json:
    return {
        "name": "r",
        "firstAvailable": [{"name": f"c{index}", **alternative} for index, alternative in enumerate(choices)],
    }


def choice(device_class: str = "gpu.nvidia.com", **more: Any) -> Json:
    return {"deviceClassName": device_class, **more}


@pytest.mark.parametrize(
    "requests",
    [
        [exactly()],
        [exactly(count=4)],
        [exactly(count=2), exactly("mig.nvidia.com", count=3), exactly("other.example.com", count=5)],
        [exactly(count=2), exactly(count=6)],
        [exactly(allocationMode="All")],
        [exactly(adminAccess=True, count=2)],
        [exactly("mig.nvidia.com", allocationMode="ExactCount", count=7)],
        [first(choice(count=8), choice("mig.nvidia.com", count=2))],
        [first(choice(count=2), choice(count=5), choice("mig.nvidia.com", allocationMode="All"))],
        [exactly(count=1), first(choice(count=2), choice(count=3))],
    ],
)
def test_charges_of_a_claim_template_match_the_api_server(world: World, requests: list[Json]) -> None:
    named = [{**request, "name": f"r{index}"} for index, request in enumerate(requests)]
    template = claim_template("t", *named, namespace=NAMESPACE)
    claim = {"metadata": {"name": "x"}, "spec": template["spec"]["spec"]}

    async def refused() -> str:
        async with client(world.cluster) as api:
            path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
            status, reply, _ = await api.send("POST", path, claim, **DRY_RUN)
            assert status == 403, reply
            return str(reply["message"])

    rejection = EXCEEDED.search(asyncio.run(refused()))
    assert rejection is not None
    pairs = (pair.rsplit("=", 1) for pair in rejection[1].split(","))
    theirs = {name: int(quantity.parse(amount)) for name, amount in pairs}
    (charge,) = charges(["t"], Context(namespace=NAMESPACE, view=Snapshot([template])))
    assert theirs == {name: amount for name, amount in charge.usage.items() if name in COUNTED}
