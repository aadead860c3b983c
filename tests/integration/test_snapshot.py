"""A snapshot of a real cluster gives the same verdicts as the cluster."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support import jobs
from tests.support.installation import inventory
from tests.support.installation.inventory import PLACES, TEAM
from tests.support.live_views import viewing
from webhook.admission import pipelines
from webhook.admission.decision import Decision
from webhook.cli import files
from webhook.client.live_view import LiveView
from webhook.cluster.resource import Resource
from webhook.cluster.resources import watched_resources
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import UNKNOWN, ClusterView

LOOK_AT_CLUSTER = {
    "accelerator-available", "child-names", "ever-fits", "limit-range", "local-queue", "priority", "references",
    "resource-quota",
}  # fmt: skip


@dataclass
class World:
    """The same cluster, read by watches (`live`) and from a snapshot (`file`)."""

    cluster: Cluster
    live: LiveView
    file: Snapshot


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with an object of each watched kind. No controllers run, so nothing changes."""
    log_dir = tmp_path_factory.mktemp("snapshot-cluster-logs")
    with Cluster(controller_manager=False, log_dir=log_dir) as started:
        inventory.install(started)
        yield started


@pytest.fixture(scope="module")
def world(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("snapshot")
    view = asyncio.run(watched(cluster, folder / "log"))
    return World(cluster, view, view_of(snapshot(cluster.kubeconfig, folder / "cluster.yaml")))


async def watched(cluster: Cluster, log: Path) -> LiveView:
    async with viewing(cluster.kubeconfig, log, places=PLACES) as view:
        return view


def snapshot(kubeconfig: Path, file: Path, *flags: str, code: int = 0) -> Path:
    command = [sys.executable, "-W", "error", "-m", "webhook", "snapshot"]
    command += ["--kubeconfig", str(kubeconfig), "-o", str(file), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return file


def view_of(file: Path) -> Snapshot:
    found, errors = files.load([str(file)])
    assert not errors
    return Snapshot(manifest.document for manifest in found)


def verdict(view: ClusterView, job: dict[str, Any], old: dict[str, Any] | None = None) -> Decision:
    request = jobs.request(job, old=old)
    return pipelines.validate(request, policy=inventory.strict(), view=view, today=date(2026, 1, 1))


@pytest.mark.parametrize("resource", watched_resources(), ids=lambda resource: resource.name)
def test_snapshot_has_the_same_records_as_the_cluster(world: World, resource: Resource[Any, Any]) -> None:
    live, file = world.live.all(resource), world.file.all(resource)
    assert live is not UNKNOWN
    assert live, f"the inventory has no {resource.kind}"
    assert file == live
    assert world.file.groups(resource) == world.live.groups(resource)


@pytest.mark.parametrize("job", inventory.jobs(), ids=lambda job: job["metadata"]["name"])
def test_snapshot_gives_the_same_verdicts_as_the_cluster(world: World, job: dict[str, Any]) -> None:
    live = verdict(world.live, job)
    # The job "selector" gets a warning instead of a rejection, because nodes may get the label later.
    assert bool(live.denied) == (job["metadata"]["name"] not in {"full", "unqueued", "stored", "selector"}), (
        live.message
    )
    assert job["metadata"]["name"] != "selector" or "accelerator-available" in {found.rule for found in live.warned}
    view = world.file
    assert verdict(view, job) == live
    request = jobs.request(job)
    patches = [pipelines.mutate(request, policy=inventory.strict(), view=each) for each in (world.live, view)]
    assert patches[0] == patches[1]
    before = view.jobs.get((TEAM, job["metadata"]["name"]))
    if before is not None:
        stored = world.cluster.get("mpijob", job["metadata"]["name"], "-n", TEAM)
        assert verdict(view, job, dict(before)) == verdict(world.live, job, stored)


def test_every_rule_that_reads_the_cluster_rejects_a_job(world: World) -> None:
    rejecting = {finding.rule for job in inventory.jobs() for finding in verdict(world.live, job).denied}
    assert rejecting >= LOOK_AT_CLUSTER


def test_snapshot_of_one_namespace_gives_the_verdicts_of_the_cluster(world: World, tmp_path: Path) -> None:
    view = view_of(snapshot(world.cluster.kubeconfig, tmp_path / "team.yaml", "--namespace", TEAM))
    for job in inventory.jobs():
        assert verdict(view, job) == verdict(world.live, job)


def test_snapshot_by_a_user_of_one_namespace_has_the_objects_of_that_namespace(world: World, tmp_path: Path) -> None:
    cluster = world.cluster
    cluster.kubectl("create", "rolebinding", "view", "--clusterrole=view", "--user=alice", "-n", TEAM)
    alice = cluster.kubeconfig_for("alice")
    view = view_of(snapshot(alice, tmp_path / "alice.yaml", "-n", TEAM, code=1))
    live = world.live
    for resource in watched_resources():
        records = view.within(resource, TEAM) if resource.is_namespaced else view.all(resource)
        assert records is UNKNOWN or records == (live.within(resource, TEAM) if resource.is_namespaced else {})
    for job in inventory.jobs():
        assert {found.rule for found in verdict(view, job).denied} <= {f.rule for f in verdict(live, job).denied}
