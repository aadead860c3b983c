"""Every job has the NetworkPolicy that it should have, whatever happens to it, and those of other owners are left
alone.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from tests.support.jobs import changed
from tests.support.kept_objects import KeptObjects, settled
from tests.support.logs import Log
from tests.support.policies import layer
from tests.support.service_accounts import service_account
from tests.support.watch_api import until
from webhook.client.calls import ApiError, ClusterError
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.resources.service_accounts import SERVICE_ACCOUNTS
from webhook.controllers.reconciler import PacedClient
from webhook.parts.network_policies.upkeep import NETWORK_POLICIES, NetworkPolicies
from webhook.parts.network_policies.wanted import LABEL
from webhook.policy.in_force import PolicySet
from webhook.server.background import at_work

JOBS = "/apis/kubeflow.org/v2beta1/namespaces/team-a/mpijobs"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/team-a/networkpolicies"
MINE = f"{POLICIES}/mpijob-train"


def posture(value: str, more: str = "") -> str:
    return f"rules: {{network-policy: {{posture: {value}{more}}}}}"


class World:
    """A cluster and one replica that runs the controller."""

    def __init__(self, cluster: KeptObjects, policy: str) -> None:
        self.cluster = cluster
        self.log = Log()
        self.policies = PolicySet([layer("p", policy)])
        api: Any = cluster
        self.companion = NetworkPolicies(
            api=PacedClient(api, rate=1e6, burst=10**6),
            view=cluster.view([MPI_JOBS, NAMESPACES, SERVICE_ACCOUNTS]),
            watch=cluster.follow(NETWORK_POLICIES),
            policies=lambda: self.policies,
            log=self.log,
            uniform=lambda low, _: low,
        )

    def set_policy(self, policy: str) -> None:
        self.policies = PolicySet([layer("p", policy)])
        self.companion.resync()

    async def settled(self) -> None:
        """Nothing is left to do now."""
        await settled(self.companion.reconciler)

    @property
    def spec(self) -> Any:
        return self.cluster.objects[MINE]["spec"]

    @property
    def events(self) -> list[str]:
        return [each["reason"] for each in self.cluster.named("events").values()]


@pytest.fixture
def cluster() -> KeptObjects:
    found = KeptObjects()
    found.put("/api/v1/namespaces/team-a", {"metadata": {"labels": {"tier": "gold"}}})
    return found


@asynccontextmanager
async def running(cluster: KeptObjects, policy: str = posture("default")) -> AsyncIterator[World]:
    world = World(cluster, policy)
    async with at_work(world.companion.run):
        await world.settled()
        yield world


def stored(cluster: KeptObjects, name: str = "train", changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A job is stored."""
    return cluster.put(f"{JOBS}/{name}", changed({"metadata.name": name, **(changes or {})}))


def asking(value: str) -> dict[str, Any]:
    return {"metadata.annotations": {LABEL: value}}


async def test_a_job_has_one_as_soon_as_it_is_stored(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        job = stored(cluster)
        await world.settled()
        made = cluster.objects[MINE]
        assert made["metadata"]["labels"][LABEL] == "default"
        assert made["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "name": "train",
                "uid": job["metadata"]["uid"],
                "controller": True,
            }
        ]
        assert cluster.calls == [("GET", f"{JOBS}/train"), ("POST", POLICIES)]
        world.companion.resync()
        await world.settled()
        assert len(cluster.calls) == 2


@pytest.mark.parametrize(
    ("policy", "changes", "given"),
    [
        (posture("none"), {}, None),
        (posture("none"), asking("isolated"), None),
        (posture("none", ", choices: [isolated]"), asking("isolated"), "isolated"),
        (posture("restricted", ", choices: [none]"), asking("none"), None),
        (posture("restricted", ", choices: [default]"), asking("none"), "restricted"),
        (posture("restricted", ", choices: [default]"), asking("default"), "default"),
        (posture("default"), asking("nonsense"), "default"),
        ("rules: {network-policy: {posture: isolated, action: off}}", {}, "isolated"),
        ("namespaces: {matchLabels: {tier: gold}}\n" + posture("isolated"), {}, "isolated"),
        ("namespaces: {matchLabels: {tier: iron}}\n" + posture("isolated"), {}, None),
        (posture("default"), {"spec.runPolicy.suspend": True}, "default"),
        (posture("default"), {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, None),
        (posture("default"), {"Worker.template.spec.hostNetwork": True}, None),
        (posture("default"), {"Launcher.template.spec.hostNetwork": True}, None),
    ],
)
async def test_the_policy_and_the_job_decide(
    cluster: KeptObjects, policy: str, changes: dict[str, Any], given: str | None
) -> None:
    stored(cluster, changes=changes)
    async with running(cluster, policy) as world:
        await world.settled()
        made = cluster.objects.get(MINE)
        assert (made and made["metadata"]["labels"][LABEL]) == given
        assert world.companion.reconciler.failing == 0
        if given is None:
            assert cluster.writes() == []


async def test_name_that_is_not_a_label_causes_no_error(cluster: KeptObjects) -> None:
    stored(cluster, "a" * 64)
    async with running(cluster) as world:
        assert cluster.named("networkpolicies") == {}
        assert world.companion.reconciler.failing == 0


async def test_a_job_that_cannot_be_read_is_named(cluster: KeptObjects) -> None:
    """A job that was stored without a check: its NetworkPolicy is unknown."""
    stored(cluster, changes={"Worker.template.spec.hostNetwork": "yes"})
    async with running(cluster) as world:
        await world.settled()
        assert "MPIJob team-a/train cannot be read" in world.companion.reconciler.problem
        assert cluster.writes() == []


def mangled(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object as others may leave it."""
    yield {**found, "spec": {**found["spec"], "ingress": [{}]}}
    yield {**found, "spec": {**found["spec"], "podSelector": {}}}
    yield {**found, "spec": {**found["spec"], "policyTypes": ["Egress"]}}
    yield {**found, "metadata": {**found["metadata"], "labels": {}}}
    yield {**found, "metadata": {**found["metadata"], "labels": {LABEL: "isolated"}}}


async def test_changed_or_removed_network_policy_is_restored_and_reported_once(cluster: KeptObjects) -> None:
    async with running(cluster, posture("restricted")) as world:
        world.companion._put_back.wait = lambda *_: 0.0  # type: ignore[method-assign]
        stored(cluster)
        await world.settled()
        good = cluster.objects[MINE]
        for bad in mangled(good):
            cluster.put(MINE, bad)
            await world.settled()
            assert world.spec == good["spec"]
            assert cluster.objects[MINE]["metadata"]["labels"][LABEL] == "restricted"
        cluster.remove(MINE)
        await world.settled()
        assert world.spec == good["spec"]
        assert world.events == ["NetworkPolicyPutBack"]
        assert {each[0] for each in cluster.writes()} == {"POST", "PATCH"}


async def test_labels_and_notes_of_others_stay(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        stored(cluster)
        await world.settled()
        made = cluster.objects[MINE]
        cluster.put(MINE, {**made, "metadata": {**made["metadata"], "labels": {"team": "a"}}})
        await world.settled()
        assert cluster.objects[MINE]["metadata"]["labels"] == {**made["metadata"]["labels"], "team": "a"}


@pytest.mark.parametrize("labels", [{}, {LABEL: "default"}])
async def test_an_object_of_others_is_left_alone_and_reported(cluster: KeptObjects, labels: dict[str, str]) -> None:
    foreign = cluster.put(MINE, {"metadata": {"labels": labels}, "spec": {"podSelector": {}}})
    async with running(cluster) as world:
        stored(cluster)
        await world.settled()
        assert cluster.objects[MINE] == foreign
        assert world.events == ["NetworkPolicyForeign"]
        assert world.companion.reconciler.problem.endswith(
            "NetworkPolicy team-a/mpijob-train does not belong to the job"
        )
        cluster.remove(MINE)
        world.companion.reconciler.add(("team-a", "train"))
        await world.settled()
        assert cluster.objects[MINE]["metadata"]["labels"][LABEL] == "default"
        assert world.companion.reconciler.failing == 0


@pytest.mark.parametrize("changes", [asking("none"), {"Worker.template.spec.hostNetwork": True}])
async def test_foreign_object_is_no_fault_if_none_is_wanted(cluster: KeptObjects, changes: dict[str, Any]) -> None:
    foreign = cluster.put(MINE, {"metadata": {"labels": {LABEL: "default"}}, "spec": {"podSelector": {}}})
    stored(cluster, changes=changes)
    async with running(cluster, posture("default", ", choices: [none]")) as world:
        world.companion.resync()
        await world.settled()
        assert cluster.objects[MINE] == foreign
        assert world.companion.reconciler.failing == 0
        assert cluster.writes() == []


async def test_new_jobs_come_before_jobs_with_a_network_policy(cluster: KeptObjects) -> None:
    for number in range(40):
        stored(cluster, f"job-{number}")
    async with running(cluster) as world:
        spans: list[tuple[float, float]] = []
        world.companion.uniform = lambda low, high: spans.append((low, high)) or 3600.0  # type: ignore[func-returns-value]
        world.set_policy(posture("restricted"))
        calls = len(cluster.calls)
        stored(cluster, "new")
        await world.settled()
        assert spans == [(0, 3.0)] * 40
        assert len(cluster.calls) == calls + 2


async def test_network_policy_of_a_former_job_is_awaited(cluster: KeptObjects) -> None:
    stored(cluster)
    async with running(cluster) as world:
        old = cluster.objects[MINE]["metadata"]["ownerReferences"][0]["uid"]
        cluster.remove(f"{JOBS}/train")
        job = stored(cluster)
        await world.settled()
        assert cluster.objects[MINE]["metadata"]["ownerReferences"][0]["uid"] == old
        cluster.remove(MINE)  # the garbage collector
        await world.settled()
        assert cluster.objects[MINE]["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
        assert world.events == []


async def test_persistent_foreign_object_is_reported_without_endless_calls(cluster: KeptObjects) -> None:
    """Otherwise any user who may create NetworkPolicies could keep every replica busy, to the harm of all other
    jobs.
    """
    nobody = {"apiVersion": "kubeflow.org/v9", "kind": "MPIJob", "name": "train", "uid": "nobody", "controller": True}
    cluster.put(MINE, {"metadata": {"labels": {LABEL: "default"}, "ownerReferences": [nobody]}, "spec": {}})
    now = 0.0
    async with running(cluster) as world:
        world.companion._writer._clock = lambda: now
        stored(cluster)
        await world.settled()
        for expected in (1, 1, 2, 4, 8, 16, 32):
            assert await world.companion._look(("team-a", "train")) == expected
            now += expected
        with pytest.raises(ClusterError, match="does not belong to the job"):
            await world.companion._look(("team-a", "train"))
        assert world.events == ["NetworkPolicyForeign"]
        cluster.remove(MINE)
        await world.settled()
        assert cluster.objects[MINE]["metadata"]["labels"][LABEL] == "default"


async def test_network_policy_of_a_deleted_job_is_not_recreated(cluster: KeptObjects) -> None:
    stored(cluster)
    async with running(cluster) as world:
        cluster.late = True  # the caches do not know yet
        job = cluster.objects[f"{JOBS}/train"]
        cluster.put(
            f"{JOBS}/train", {**job, "metadata": {**job["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        )
        cluster._missed.clear()
        cluster.late = False
        cluster.remove(MINE)
        await world.settled()
        assert MINE not in cluster.objects
        cluster.remove(f"{JOBS}/train")
        await world.settled()
        assert world.companion._wanted == {}
        assert world.events == []


async def test_a_change_of_the_policy_reaches_jobs_that_exist(cluster: KeptObjects) -> None:
    stored(cluster)
    async with running(cluster) as world:
        assert world.spec["policyTypes"] == ["Ingress"]
        world.set_policy(posture("restricted"))
        await world.settled()
        assert world.spec["policyTypes"] == ["Ingress", "Egress"]
        world.companion._put_back.wait = lambda *_: 0.0  # type: ignore[method-assign]
        world.set_policy(posture("none"))
        await world.settled()
        assert world.spec["podSelector"]["matchExpressions"]
        calls = len(cluster.calls)
        world.companion.resync()
        await world.settled()
        assert len(cluster.calls) == calls
        assert world.events == []


async def test_labels_of_the_namespace_and_the_annotation_may_change(cluster: KeptObjects) -> None:
    stored(cluster)
    text = "namespaces: {matchLabels: {tier: iron}}\n" + posture("restricted", ", choices: [default]")
    async with running(cluster, text) as world:
        assert MINE not in cluster.objects
        cluster.put("/api/v1/namespaces/team-a", {"metadata": {"labels": {"tier": "iron"}}})
        await world.settled()
        assert world.spec["policyTypes"] == ["Ingress", "Egress"]
        stored(
            cluster, changes={**asking("default"), "metadata.uid": cluster.objects[f"{JOBS}/train"]["metadata"]["uid"]}
        )
        await world.settled()
        assert world.spec["policyTypes"] == ["Ingress"]


async def test_an_account_may_give_its_pods_no_token_any_more(cluster: KeptObjects) -> None:
    """Unrelated changes of the account cause no calls."""
    path = "/api/v1/namespaces/team-a/serviceaccounts/default"

    def opens(world: World, wanted: bool) -> bool:
        port = {"protocol": "TCP", "port": 6443}
        return any(port in rule.get("ports", ()) for rule in world.spec["egress"]) is wanted

    cluster.put(path, service_account("default"))
    stored(cluster)
    async with running(cluster, posture("restricted")) as world:
        assert opens(world, wanted=True)
        calls = len(cluster.calls)
        cluster.put(path, {**service_account("default"), "secrets": [{"name": "x"}]})
        cluster.put("/api/v1/namespaces/team-a/serviceaccounts/other", service_account("other", token=True))
        await world.settled()
        assert len(cluster.calls) == calls
        for token, opened in ((False, False), (None, True)):
            cluster.put(path, service_account("default", token=token))
            await until(partial(opens, world, opened))


async def test_while_the_namespace_is_unknown_nothing_is_done(cluster: KeptObjects) -> None:
    cluster.remove("/api/v1/namespaces/team-a")
    stored(cluster)
    async with running(cluster) as world:
        assert cluster.calls == []
        cluster.put("/api/v1/namespaces/team-a", {"metadata": {}})
        await world.settled()
        assert MINE in cluster.objects


async def test_a_new_replica_reads_each_job_and_writes_nothing(cluster: KeptObjects) -> None:
    for number in range(20):
        stored(cluster, f"job-{number}")
    async with running(cluster):
        pass
    cluster.calls.clear()
    async with running(cluster) as world:
        await world.settled()
        assert len(cluster.calls) == 20
        assert cluster.writes() == []


async def test_a_thousand_jobs_at_once_cost_two_calls_each(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        for number in range(1000):
            stored(cluster, f"job-{number}")
        await world.settled()
        assert len(cluster.named("networkpolicies")) == 1000
        assert len(cluster.calls) == 2000


async def test_two_replicas_make_one_object_and_no_noise(cluster: KeptObjects) -> None:
    async with running(cluster) as one, running(cluster) as other:
        cluster.late = True
        for number in range(50):
            stored(cluster, f"job-{number}")
        cluster.catch_up()
        for world in (one, other):
            await world.settled()
        assert len(cluster.named("networkpolicies")) == 50
        assert all(method != "PATCH" for method, _ in cluster.calls)
        assert one.events == []
        assert len(cluster.calls) <= 50 * 5


async def test_replicas_with_different_policies_stop_overwriting_each_other(cluster: KeptObjects) -> None:
    async with running(cluster, posture("default")) as one, running(cluster, posture("restricted")) as other:
        for world in (one, other):
            world.companion._clock = lambda: 0.0
        stored(cluster)
        for _ in range(50):
            await one.settled()
            await other.settled()
        assert 1 <= sum(method == "PATCH" for method, _ in cluster.calls) <= 4


async def test_an_object_that_is_exchanged_meanwhile_is_not_written_over(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        stored(cluster)
        await world.settled()
        foreign = {"metadata": {"labels": {}}, "spec": {"podSelector": {}}}

        def before(method: str, path: str) -> None:
            if method == "PATCH":
                cluster.before = lambda *_: None
                cluster.objects[MINE] = {**foreign, "metadata": {"name": "mpijob-train", "uid": "other"}}

        cluster.before = before
        cluster.put(MINE, {**cluster.objects[MINE], "spec": {}})
        await world.settled()
        assert cluster.objects[MINE]["spec"] == foreign["spec"]
        assert world.companion.reconciler.failing == 1


@pytest.mark.parametrize("status", [403, 422, 500])
async def test_rejected_write_is_reported(cluster: KeptObjects, status: int) -> None:
    def before(method: str, path: str) -> None:
        if method == "POST":
            raise ApiError(status, f"the API server refuses: no ({status})")

    cluster.before = before
    stored(cluster)
    async with running(cluster) as world:
        assert str(status) in world.companion.reconciler.problem
        assert world.companion.reconciler.failing == 1


async def test_rejected_write_is_retried_without_a_watch(cluster: KeptObjects) -> None:
    def before(method: str, path: str) -> None:
        if method == "POST":
            raise ApiError(403, "no")

    cluster.before = before
    stored(cluster)
    world = World(cluster, posture("default"))
    world.companion.watch.synced = False
    async with at_work(world.companion.run):
        for _ in range(3):
            await world.settled()
            world.companion.reconciler.add(("team-a", "train"))
        assert world.companion.reconciler.failing == 1


async def test_without_its_namespace_there_is_nothing_to_do(cluster: KeptObjects) -> None:
    def before(method: str, path: str) -> None:
        if method == "POST":
            raise ApiError(404, "not found")

    cluster.before = before
    stored(cluster)
    async with running(cluster) as world:
        assert world.companion.reconciler.failing == 0


async def test_network_policy_is_written_once_without_a_watch(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        world.companion.watch.synced = False
        stored(cluster)
        await world.settled()
        assert MINE in cluster.objects
        calls = len(cluster.calls)
        world.companion.resync()
        await world.settled()
        assert len(cluster.calls) == calls
