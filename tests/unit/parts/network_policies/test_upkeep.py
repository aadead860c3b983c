"""The controller creates the NetworkPolicies of jobs and restores them after changes.

A NetworkPolicy is foreign if the job does not own it. The controller does not change foreign NetworkPolicies. A posture
is a degree of isolation. The policy and an annotation of the job select the posture.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest

from tests.support.jobs import changed
from tests.support.kept_objects import KeptObjects
from tests.support.owned_objects import OwnerWorld
from tests.support.service_accounts import service_account
from tests.support.watch_api import until
from webhook.client.calls import ApiError, ClusterError
from webhook.cluster.resources.service_accounts import SERVICE_ACCOUNTS
from webhook.parts.network_policies.job_policy import LABEL
from webhook.parts.network_policies.upkeep import NETWORK_POLICIES, NetworkPolicies
from webhook.server.background import at_work

JOBS = "/apis/kubeflow.org/v2beta1/namespaces/team-a/mpijobs"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/team-a/networkpolicies"
MINE = f"{POLICIES}/mpijob-train"


def posture(value: str, more: str = "") -> str:
    return f"rules: {{network-policy: {{posture: {value}{more}}}}}"


class World(OwnerWorld):
    def __init__(self, cluster: KeptObjects, policy: str) -> None:
        controller = partial(NetworkPolicies, uniform=lambda low, _: low)
        super().__init__(cluster, policy, controller, NETWORK_POLICIES, SERVICE_ACCOUNTS)

    async def store(self, name: str = "train", **changes: Any) -> dict[str, Any]:
        """Store a job, and wait until the controller has handled it."""
        job = store(self.cluster, name, changes)
        await self.settled()
        return job

    @property
    def spec(self) -> Any:
        return self.cluster.objects[MINE]["spec"]


def running(cluster: KeptObjects, policy: str = posture("default")) -> AbstractAsyncContextManager[World]:
    return World(cluster, policy).running()


def store(cluster: KeptObjects, name: str = "train", changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return cluster.put(f"{JOBS}/{name}", changed({"metadata.name": name, **(changes or {})}))


def annotated(value: str) -> dict[str, Any]:
    return {"metadata.annotations": {LABEL: value}}


async def test_job_gets_a_network_policy_when_it_is_created(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        job = await world.store()
        made = cluster.objects[MINE]
        assert made["metadata"]["labels"][LABEL] == "default"
        (owner,) = made["metadata"]["ownerReferences"]
        assert owner["uid"] == job["metadata"]["uid"]
        assert cluster.calls == [("GET", f"{JOBS}/train"), ("POST", POLICIES)]
        world.controller.resync()
        await world.settled()
        assert len(cluster.calls) == 2


@pytest.mark.parametrize(
    ("policy", "changes", "expected"),
    [
        (posture("none"), {}, None),
        (posture("none"), annotated("isolated"), None),
        (posture("none", ", choices: [isolated]"), annotated("isolated"), "isolated"),
        (posture("restricted", ", choices: [none]"), annotated("none"), None),
        (posture("restricted", ", choices: [default]"), annotated("none"), "restricted"),
        (posture("restricted", ", choices: [default]"), annotated("default"), "default"),
        (posture("default"), annotated("nonsense"), "default"),
        ("rules: {network-policy: {posture: isolated, action: off}}", {}, "isolated"),
        ("namespaces: {matchLabels: {tier: gold}}\n" + posture("isolated"), {}, "isolated"),
        ("namespaces: {matchLabels: {tier: iron}}\n" + posture("isolated"), {}, None),
        (posture("default"), {"spec.runPolicy.suspend": True}, "default"),
        (posture("default"), {"Worker.template.spec.hostNetwork": True}, None),
    ],
)
async def test_posture_depends_on_the_policy_and_the_job(
    cluster: KeptObjects, policy: str, changes: dict[str, Any], expected: str | None
) -> None:
    store(cluster, changes=changes)
    async with running(cluster, policy) as world:
        await world.settled()
        made = cluster.objects.get(MINE)
        assert (made and made["metadata"]["labels"][LABEL]) == expected
        assert world.controller.reconciler.failing == 0
        if expected is None:
            assert cluster.writes() == []


async def test_job_that_cannot_be_decoded_is_reported(cluster: KeptObjects) -> None:
    """The job was created while the webhook did not check jobs."""
    store(cluster, changes={"Worker.template.spec.hostNetwork": "yes"})
    async with running(cluster) as world:
        await world.settled()
        assert "MPIJob team-a/train cannot be read" in world.controller.reconciler.problem
        assert cluster.writes() == []


def tampered(original: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Copies of the object, each with one change by a user."""
    yield changed({"spec.ingress": [{}]}, original)
    yield changed({"spec.podSelector": {}}, original)
    yield changed({"spec.policyTypes": ["Egress"]}, original)
    yield changed({"metadata.labels": {}}, original)
    yield changed({"metadata.labels": {LABEL: "isolated"}}, original)


async def test_changed_or_removed_network_policy_is_restored_and_reported_once(cluster: KeptObjects) -> None:
    async with running(cluster, posture("restricted")) as world:
        world.controller._rewritten.wait = lambda *_: 0.0  # type: ignore[method-assign]
        await world.store()
        good = cluster.objects[MINE]
        for bad in tampered(good):
            cluster.put(MINE, bad)
            await world.settled()
            assert world.spec == good["spec"]
            assert cluster.objects[MINE]["metadata"]["labels"][LABEL] == "restricted"
        cluster.remove(MINE)
        await world.settled()
        assert world.spec == good["spec"]
        assert world.events == ["NetworkPolicyPutBack"]
        assert {method for method, _ in cluster.writes()} == {"POST", "PATCH"}


async def test_foreign_labels_are_not_removed(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        await world.store()
        made = cluster.objects[MINE]
        cluster.put(MINE, changed({"metadata.labels": {"team": "a"}}, made))
        await world.settled()
        assert cluster.objects[MINE]["metadata"]["labels"] == {**made["metadata"]["labels"], "team": "a"}


@pytest.mark.parametrize("labels", [{}, {LABEL: "default"}])
async def test_foreign_network_policy_is_not_changed_and_is_reported(
    cluster: KeptObjects, labels: dict[str, str]
) -> None:
    foreign = cluster.put(MINE, {"metadata": {"labels": labels}, "spec": {"podSelector": {}}})
    async with running(cluster) as world:
        await world.store()
        assert cluster.objects[MINE] == foreign
        assert world.events == ["NetworkPolicyForeign"]
        problem = world.controller.reconciler.problem
        assert problem.endswith("NetworkPolicy team-a/mpijob-train does not belong to the job")
        cluster.remove(MINE)
        world.controller.reconciler.add(("team-a", "train"))
        await world.settled()
        assert cluster.objects[MINE]["metadata"]["labels"][LABEL] == "default"
        assert world.controller.reconciler.failing == 0


@pytest.mark.parametrize("changes", [annotated("none"), {"Worker.template.spec.hostNetwork": True}])
async def test_foreign_network_policy_is_ignored_if_the_job_needs_no_network_policy(
    cluster: KeptObjects, changes: dict[str, Any]
) -> None:
    foreign = cluster.put(MINE, {"metadata": {"labels": {LABEL: "default"}}, "spec": {"podSelector": {}}})
    store(cluster, changes=changes)
    async with running(cluster, posture("default", ", choices: [none]")) as world:
        world.controller.resync()
        await world.settled()
        assert cluster.objects[MINE] == foreign
        assert world.controller.reconciler.failing == 0
        assert cluster.writes() == []


async def test_after_a_policy_change_a_new_job_is_checked_before_existing_jobs(cluster: KeptObjects) -> None:
    for number in range(40):
        store(cluster, f"job-{number}")
    async with running(cluster) as world:
        spans: list[tuple[float, float]] = []
        world.controller.uniform = lambda low, high: spans.append((low, high)) or 3600.0  # type: ignore[func-returns-value]
        world.set_policy(posture("restricted"))
        calls = len(cluster.calls)
        await world.store("new")
        assert spans == [(0, 3.0)] * 40
        assert len(cluster.calls) == calls + 2


async def test_job_gets_its_network_policy_after_the_network_policy_of_a_deleted_namesake_is_gone(
    cluster: KeptObjects,
) -> None:
    store(cluster)
    async with running(cluster) as world:
        old = cluster.objects[MINE]["metadata"]["ownerReferences"][0]["uid"]
        cluster.remove(f"{JOBS}/train")
        job = await world.store()
        assert cluster.objects[MINE]["metadata"]["ownerReferences"][0]["uid"] == old
        cluster.remove(MINE)  # as the garbage collector does
        await world.settled()
        assert cluster.objects[MINE]["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
        assert world.events == []


async def test_foreign_network_policy_with_an_unknown_owner_is_checked_less_and_less_often(
    cluster: KeptObjects,
) -> None:
    """Otherwise a user who may create NetworkPolicies could keep every replica busy."""
    nobody = {"apiVersion": "kubeflow.org/v9", "kind": "MPIJob", "name": "train", "uid": "nobody", "controller": True}
    cluster.put(MINE, {"metadata": {"labels": {LABEL: "default"}, "ownerReferences": [nobody]}, "spec": {}})
    now = 0.0
    async with running(cluster) as world:
        world.controller._clock = lambda: now
        await world.store()
        for expected in (1, 1, 2, 4, 8, 16, 32):
            assert await world.controller._look(("team-a", "train")) == expected
            now += expected
        with pytest.raises(ClusterError, match="does not belong to the job"):
            await world.controller._look(("team-a", "train"))
        assert world.events == ["NetworkPolicyForeign"]
        cluster.remove(MINE)
        await world.settled()
        assert cluster.objects[MINE]["metadata"]["labels"][LABEL] == "default"


async def test_network_policy_of_a_deleted_job_is_not_recreated(cluster: KeptObjects) -> None:
    store(cluster)
    async with running(cluster) as world:
        cluster.late = True  # the watches have not reported the change yet
        job = cluster.objects[f"{JOBS}/train"]
        cluster.put(f"{JOBS}/train", changed({"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"}, job))
        cluster._missed.clear()
        cluster.late = False
        cluster.remove(MINE)
        await world.settled()
        assert MINE not in cluster.objects
        cluster.remove(f"{JOBS}/train")
        await world.settled()
        assert world.controller._expected == {}
        assert world.events == []


async def test_changed_policy_applies_to_existing_jobs(cluster: KeptObjects) -> None:
    store(cluster)
    async with running(cluster) as world:
        assert world.spec["policyTypes"] == ["Ingress"]
        world.set_policy(posture("restricted"))
        await world.settled()
        assert world.spec["policyTypes"] == ["Ingress", "Egress"]
        world.controller._rewritten.wait = lambda *_: 0.0  # type: ignore[method-assign]
        world.set_policy(posture("none"))
        await world.settled()
        assert world.spec["podSelector"]["matchExpressions"]
        calls = len(cluster.calls)
        world.controller.resync()
        await world.settled()
        assert len(cluster.calls) == calls
        assert world.events == []


async def test_changed_namespace_labels_and_changed_annotation_apply_to_existing_jobs(cluster: KeptObjects) -> None:
    store(cluster)
    text = "namespaces: {matchLabels: {tier: iron}}\n" + posture("restricted", ", choices: [default]")
    async with running(cluster, text) as world:
        assert MINE not in cluster.objects
        cluster.put("/api/v1/namespaces/team-a", {"metadata": {"labels": {"tier": "iron"}}})
        await world.settled()
        assert world.spec["policyTypes"] == ["Ingress", "Egress"]
        uid = cluster.objects[f"{JOBS}/train"]["metadata"]["uid"]
        await world.store(**annotated("default"), **{"metadata.uid": uid})
        assert world.spec["policyTypes"] == ["Ingress"]


async def test_changed_token_setting_of_a_service_account_applies_to_existing_jobs(cluster: KeptObjects) -> None:
    """Unrelated changes of ServiceAccounts cause no calls."""
    path = "/api/v1/namespaces/team-a/serviceaccounts/default"

    def allows_api_server(world: World, expected: bool) -> bool:
        port = {"protocol": "TCP", "port": 6443}
        return any(port in rule.get("ports", ()) for rule in world.spec["egress"]) is expected

    cluster.put(path, service_account("default"))
    store(cluster)
    async with running(cluster, posture("restricted")) as world:
        assert allows_api_server(world, expected=True)
        calls = len(cluster.calls)
        cluster.put(path, {**service_account("default"), "secrets": [{"name": "x"}]})
        cluster.put("/api/v1/namespaces/team-a/serviceaccounts/other", service_account("other", token=True))
        await world.settled()
        assert len(cluster.calls) == calls
        for token, allowed in ((False, False), (None, True)):
            cluster.put(path, service_account("default", token=token))
            await until(partial(allows_api_server, world, allowed))


async def test_network_policy_is_created_as_soon_as_the_namespace_is_known(cluster: KeptObjects) -> None:
    cluster.remove("/api/v1/namespaces/team-a")
    store(cluster)
    async with running(cluster) as world:
        assert cluster.calls == []
        cluster.put("/api/v1/namespaces/team-a", {"metadata": {}})
        await world.settled()
        assert MINE in cluster.objects


async def test_second_replica_reads_each_job_and_writes_no_object(cluster: KeptObjects) -> None:
    for number in range(20):
        store(cluster, f"job-{number}")
    async with running(cluster):
        pass
    cluster.calls.clear()
    async with running(cluster) as world:
        await world.settled()
        assert len(cluster.calls) == 20
        assert cluster.writes() == []


async def test_two_replicas_create_one_network_policy_for_each_job(cluster: KeptObjects) -> None:
    async with running(cluster) as first, running(cluster) as second:
        cluster.late = True
        for number in range(50):
            store(cluster, f"job-{number}")
        cluster.catch_up()
        for world in (first, second):
            await world.settled()
        assert len(cluster.named("networkpolicies")) == 50
        assert all(method != "PATCH" for method, _ in cluster.calls)
        assert first.events == []
        assert len(cluster.calls) <= 50 * 5


async def test_replicas_with_different_policies_overwrite_each_other_only_a_few_times(cluster: KeptObjects) -> None:
    async with running(cluster, posture("default")) as first, running(cluster, posture("restricted")) as second:
        for world in (first, second):
            world.controller._clock = lambda: 0.0
        store(cluster)
        for _ in range(50):
            await first.settled()
            await second.settled()
        assert 1 <= sum(method == "PATCH" for method, _ in cluster.calls) <= 4


async def test_object_that_is_replaced_before_the_write_is_not_overwritten(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        await world.store()
        foreign = {"metadata": {"labels": {}}, "spec": {"podSelector": {}}}

        def before(method: str, path: str) -> None:
            if method == "PATCH":
                cluster.before = lambda *_: None
                cluster.objects[MINE] = {**foreign, "metadata": {"name": "mpijob-train", "uid": "other"}}

        cluster.before = before
        cluster.put(MINE, {**cluster.objects[MINE], "spec": {}})
        await world.settled()
        assert cluster.objects[MINE]["spec"] == foreign["spec"]
        assert world.controller.reconciler.failing == 1


def reject_creation(cluster: KeptObjects, status: int) -> None:
    """Let the API server answer every creation of a NetworkPolicy with this error status."""

    def before(method: str, path: str) -> None:
        if method == "POST":
            raise ApiError(status, f"rejected ({status})")

    cluster.before = before


@pytest.mark.parametrize("status", [403, 422, 500])
async def test_rejected_write_is_reported(cluster: KeptObjects, status: int) -> None:
    reject_creation(cluster, status)
    store(cluster)
    async with running(cluster) as world:
        assert str(status) in world.controller.reconciler.problem
        assert world.controller.reconciler.failing == 1


async def test_rejected_write_is_retried_if_the_watch_fails(cluster: KeptObjects) -> None:
    reject_creation(cluster, 403)
    store(cluster)
    world = World(cluster, posture("default"))
    world.controller.watch.synced = False
    async with at_work(world.controller.run):
        for _ in range(3):
            await world.settled()
            world.controller.reconciler.add(("team-a", "train"))
        assert world.controller.reconciler.failing == 1


async def test_write_into_a_deleted_namespace_causes_no_error(cluster: KeptObjects) -> None:
    reject_creation(cluster, 404)
    store(cluster)
    async with running(cluster) as world:
        assert world.controller.reconciler.failing == 0


async def test_network_policy_is_written_once_if_the_watch_fails(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        world.controller.watch.synced = False
        await world.store()
        assert MINE in cluster.objects
        calls = len(cluster.calls)
        world.controller.resync()
        await world.settled()
        assert len(cluster.calls) == calls
