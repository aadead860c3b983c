"""An unknown or stale resource never makes a rule reject a job. Metrics count unknown resources."""

import asyncio
import os
import signal
import time
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controlplane.cluster import Cluster
from tests.support import jobs
from tests.support.installation import inventory, service
from tests.support.installation.inventory import PLACES, TEAM
from tests.support.live_views import connected, until, viewing
from webhook.admission import pipelines
from webhook.client import connection as connections
from webhook.client import watch as watches
from webhook.client.live_view import LiveView, kinds
from webhook.cluster.resource import ByNamespace, K, Resource, T
from webhook.cluster.resources import watched_resources
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import UNKNOWN, Answer, ClusterView, Unknown
from webhook.server.log import make_log

# API servers are killed here, and asyncio does not close a connection whose peer dies in the TLS handshake.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

ALL = watched_resources()
GROUPS = {
    "kueue.x-k8s.io",
    "k8s.cni.cncf.io",
    "scheduling.volcano.sh",
    "scheduling.x-k8s.io",
    "config.openshift.io",
    "quota.openshift.io",
    "security.openshift.io",
}
CUSTOM = [resource for resource in ALL if resource.api_group in GROUPS]
SEEN_LATER = {"queue", "network", "never", "volcano"}
JOBS = inventory.jobs()
POLICY = inventory.strict()


@dataclass(frozen=True)
class Without:
    """A view in which some resources are unknown."""

    view: ClusterView
    hidden: Collection[Resource[Any, Any]]

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        return UNKNOWN if resource in self.hidden else self.view.get(resource, key)

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        return UNKNOWN if resource in self.hidden else self.view.all(resource)

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        return UNKNOWN if resource in self.hidden else self.view.within(resource, namespace)

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        return UNKNOWN if resource in self.hidden else self.view.groups(resource)

    def not_served(self, resource: Resource[Any, Any]) -> bool:
        return resource not in self.hidden and self.view.not_served(resource)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that these tests may break. Kueue, Multus, Volcano and OpenShift are missing at first."""
    with Cluster(controller_manager=False, log_dir=tmp_path_factory.mktemp("unknown-cluster-logs")) as started:
        yield started


@pytest.fixture(scope="module")
def full(cluster: Cluster) -> Cluster:
    """The cluster with an object of each resource, and for each resource a user who may read all other resources."""
    inventory.install(cluster)
    cluster.apply([manifest for resource in ALL for manifest in everything_but(resource)])
    return cluster


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "LAST_DELAY", 0.2)


def denied(view: ClusterView, job: dict[str, Any]) -> set[str]:
    """The rules that reject the job under a policy in which all rules have the action `deny`."""
    decision = pipelines.validate(jobs.request(job), policy=POLICY, view=view, today=date(2026, 1, 1))
    return {finding.rule for finding in decision.denied}


def everything_but(resource: Resource[Any, Any]) -> Iterator[dict[str, Any]]:
    name = f"without-{resource.name}"
    rights = [
        {"apiGroups": [other.api_group], "resources": [other.plural], "verbs": ["get", "list", "watch"]}
        for other in ALL
        if not is_same(other, resource)
    ]
    metadata = {"metadata": {"name": name}}
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    subjects = [{"apiGroup": group, "kind": "User", "name": name}]
    yield {"apiVersion": f"{group}/v1", "kind": "ClusterRole", **metadata, "rules": rights}
    yield {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", **metadata, "roleRef": role, "subjects": subjects}


def is_same(one: Resource[Any, Any], other: Resource[Any, Any]) -> bool:
    """Whether RBAC treats the resources as the same."""
    return (one.api_group, one.plural) == (other.api_group, other.plural)


async def test_missing_kinds_are_unknown_until_they_are_installed(
    cluster: Cluster, request: pytest.FixtureRequest, tmp_path: Path, impatient: None
) -> None:
    async with viewing(cluster.kubeconfig, tmp_path / "log", places=PLACES) as view:
        assert CUSTOM
        for resource in ALL:
            assert (view.all(resource) is UNKNOWN) == (resource in CUSTOM), resource.name
            assert view.reason(resource).startswith("not-found: ") == (resource in CUSTOM)
        assert all(view.unknown[resource.name] == 1 for resource in CUSTOM)
        missing = {"priority", "references"}  # these rules reject jobs that refer to missing built-in objects
        assert all(denied(view, job) <= missing for job in JOBS)
        await asyncio.to_thread(request.getfixturevalue, "full")
        await until(lambda: all(view.all(resource) for resource in ALL if view.all(resource) is not UNKNOWN))
        await until(lambda: not any(view.all(resource) is UNKNOWN for resource in CUSTOM))
        await until(lambda: not denied(view, JOBS[0]))
        assert all(denied(view, job) for job in JOBS if job["metadata"]["name"] in SEEN_LATER)


@pytest.mark.parametrize("resource", ALL, ids=lambda resource: resource.name)
async def test_forbidden_resource_is_unknown_and_rejects_no_job(
    full: Cluster, tmp_path: Path, impatient: None, resource: Resource[Any, Any]
) -> None:
    user = full.kubeconfig_for(f"without-{resource.name}")
    async with viewing(user, tmp_path / "log", places=PLACES) as view:
        readable = [other for other in ALL if not is_same(other, resource)]
        await until(lambda: all(view.all(other) is not UNKNOWN for other in readable))
        before = view.unknown[resource.name]
        assert (view.all(resource), view.groups(resource)) == (UNKNOWN, UNKNOWN)
        assert view.get(resource, (TEAM, "full") if resource.is_namespaced else TEAM) is UNKNOWN
        assert view.within(resource, TEAM) is UNKNOWN
        assert view.unknown[resource.name] == before + 4
        assert view.reason(resource).startswith("forbidden: ")
        assert denied(view, JOBS[0]) == set()


async def test_unknown_resources_never_add_a_rejection(full: Cluster, tmp_path: Path) -> None:
    async with viewing(full.kubeconfig, tmp_path / "log", places=PLACES) as view:
        usual = [denied(view, job) for job in JOBS]
        assert sum(map(bool, usual)) > len(JOBS) / 2

        @settings(max_examples=40, deadline=None, database=None)
        @given(hidden=st.sets(st.sampled_from(ALL), min_size=1))
        def check(hidden: set[Resource[Any, Any]]) -> None:
            for job, rules in zip(JOBS, usual, strict=True):
                assert denied(Without(view, hidden), job) <= rules, job["metadata"]["name"]

        check()


async def test_all_resources_are_unknown_before_the_first_list(full: Cluster, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as stream:
        async with connected(full.kubeconfig) as connection:
            view = LiveView(connection, log=make_log(stream), places=PLACES)
            assert all(view.all(resource) is UNKNOWN for resource in ALL)
            assert not any(denied(view, job) for job in JOBS)


async def test_stale_cache_is_treated_as_unknown(
    full: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    for limit in ("MAX_CONNECT_SECONDS", "MAX_PAGE_SECONDS"):
        monkeypatch.setattr(connections, limit, 1)
    async with viewing(full.kubeconfig, tmp_path / "log", places=PLACES, inactivity=1) as view:
        await until(lambda: not any(view.all(resource) is UNKNOWN for resource in ALL))
        frozen = full.programs["kube-apiserver"].pid
        os.kill(frozen, signal.SIGSTOP)
        try:
            await until(lambda: all(view.reason(resource) for resource in ALL))
            assert any(denied(view, job) for job in JOBS), "cached objects are used for a while"
            for watch in view.watches:
                monkeypatch.setattr(watch, "_clock", lambda late=watch.kind.stale_after: time.monotonic() + late + 1)
            assert all(view.all(resource) is UNKNOWN for resource in ALL)
            assert not any(denied(view, job) for job in JOBS)
        finally:
            os.kill(frozen, signal.SIGCONT)
        await until(lambda: not any(view.all(resource) is UNKNOWN for resource in ALL))


def test_service_admits_jobs_and_reports_unknown_resources(full: Cluster) -> None:
    nobody = full.kubeconfig_for("nobody")
    full.kubectl("create", "clusterrole", "names", "--verb=get", "--resource=namespaces")
    full.kubectl("create", "clusterrolebinding", "names", "--clusterrole=names", "--user=nobody")
    flags = ("--kubeconfig", str(nobody), "--policy-namespace", inventory.OWN)
    with service.running(full, *flags, name="limited", register=False) as replica:
        for job in JOBS:
            assert service.review_of(replica, job)["allowed"], job["metadata"]["name"]
        lines = replica.ops("/metrics").splitlines()
    value = dict(line.rsplit(" ", 1) for line in lines if line.startswith("mpijob_webhook_cache_"))
    for resource in ALL:
        assert f'mpijob_webhook_cache_unknown_answers_total{{kind="{resource.name}"}}' in value
        for kind in kinds(resource, PLACES):
            assert float(value[f'mpijob_webhook_cache_requests_total{{kind="{kind.name}"}}']) > 0
    for name in (NAMESPACES.name, "resourcequotas", "limitranges", "persistentvolumeclaims", "services"):
        assert float(value[f'mpijob_webhook_cache_unknown_answers_total{{kind="{name}"}}']) >= len(JOBS)
        assert float(value[f'mpijob_webhook_cache_synced{{kind="{name}"}}']) == 0
