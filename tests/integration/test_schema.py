"""`mpijob-webhook check` and the real API server find schema errors in the same jobs."""

import asyncio
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.controlplane.cluster import Cluster
from tests.support.jobs import REMOVE, changed
from tools import mpijob_schema, older_versions_crd
from webhook.api import crd_schema
from webhook.api.crd_schema import CrdSchema
from webhook.cli import world_sources
from webhook.cli.job_schema import SchemaVerdict
from webhook.cli.main import main
from webhook.client import calls

Json = dict[str, Any]
SPEC = "Worker.template.spec"
CONTAINER = f"{SPEC}.containers.0"

GOOD: list[Json] = [
    {},
    {"spec.slotsPerWorker": None},
    {"spec.runPolicy.schedulingPolicy": {"minAvailable": 1, "minResources": {"cpu": 1, "vendor.io/x": "1"}}},
    {f"{SPEC}.nodeSelector": {"a": "b", "c": None}},
    {f"{CONTAINER}.ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]},
    {f"{CONTAINER}.livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 1}},
    {
        f"{SPEC}.volumes": [
            {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": 1}},
            {"name": "w", "emptyDir": {}},
        ]
    },
    {f"{CONTAINER}.envFrom": [{"configMapRef": {"optional": True}}]},
    {"metadata.ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
    {"status": {"startTime": "2026-01-01T00:00:00Z"}},
    {"Worker.template.metadata": {"name": "x", "labels": {"a": "b"}}},
]
BAD: list[Json] = [
    {"spec.slotPerWorker": 8},
    {"spec.cleanPodPolicy": "All"},
    {"spec.runPolicy.backofLimit": 1},
    {"Worker.replica": 2},
    {"zzz": {}},
    {"metadata.label": {"a": "b"}},
    {"status": {"zzz": 1}},
    {f"{CONTAINER}.imagePullPolice": "Always"},
    {f"{SPEC}.imagePullSecret": []},
    {"Worker.template.metadata": {"creationTimestamp": None}},
    {"Worker.template.metadata": {"generateName": "x"}},
    {"spec.slotsPerWorker": "8"},
    {"spec.slotsPerWorker": 1.5},
    {"spec.slotsPerWorker": True},
    {"spec.runLauncherAsWorker": "true"},
    {"spec.mpiImplementation": "openmpi"},
    {"spec.mpiReplicaSpecs": REMOVE},
    {"Worker": []},
    {f"{SPEC}.containers": [None]},
    {f"{SPEC}.containers": {}},
    {f"{CONTAINER}.name": REMOVE},
    {f"{CONTAINER}.command": "python train.py"},
    {f"{CONTAINER}.env": [{"name": "N", "value": 1}]},
    {f"{CONTAINER}.env": [{"name": "N"}, {"name": "N"}]},
    {f"{CONTAINER}.ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]},
    {f"{CONTAINER}.ports": [{"name": "x"}]},
    {f"{CONTAINER}.resources.limits.cpu": True},
    {f"{SPEC}.nodeSelector": {"a": 1}},
    {f"{SPEC}.tolerations": [{"key": "a", "tolerationSeconds": "1"}]},
]


@pytest.fixture(scope="module")
def published(cluster: Cluster) -> CrdSchema:
    async def ask() -> CrdSchema | None:
        api = await calls.connect(cluster.kubeconfig)
        try:
            return await world_sources.published_schema(api)
        except calls.ClusterError:  # not published yet
            return None
        finally:
            await api.close()

    return cluster.wait_for("the schema to be published", lambda: asyncio.run(ask()))


def test_packaged_schema_matches_the_pinned_module() -> None:
    """`make schema` updates the packaged schema."""
    assert files("webhook.api").joinpath(crd_schema.FILE).read_text(encoding="utf-8") == mpijob_schema.text()
    assert older_versions_crd.FILE.read_text(encoding="utf-8") == older_versions_crd.text()


@pytest.mark.parametrize("changes", [*GOOD, *BAD], ids=lambda changes: str(changes).partition(" at 0x")[0])
def test_api_server_and_check_reject_the_same_jobs(
    cluster: Cluster, namespace: str, published: CrdSchema, changes: Json
) -> None:
    job = changed({**changes, "metadata.namespace": namespace})
    done = cluster.kubectl("create", "--dry-run=server", "-f-", stdin=job, check=False)
    refused = done.returncode != 0
    assert refused == (changes in BAD), done.stderr
    for schema in (crd_schema.packaged(), published):
        assert bool(SchemaVerdict(job, schema).violations) == refused, (schema.origin, done.stderr)


def test_unknown_fields_from_other_clients_are_dropped(cluster: Cluster, namespace: str) -> None:
    """kubectl requests strict validation. For other clients, the API server drops the field and returns a warning."""
    job = changed({"metadata.namespace": namespace, "spec.slotPerWorker": 8})
    refused = cluster.kubectl("create", "--dry-run=server", "-f-", stdin=job, check=False)
    assert 'strict decoding error: unknown field "spec.slotPerWorker"' in refused.stderr
    path = f"/apis/kubeflow.org/v2beta1/namespaces/{namespace}/mpijobs?dryRun=All"
    taken = cluster.kubectl("create", f"--raw={path}", "-f-", stdin=job)
    assert 'unknown field "spec.slotPerWorker"' in taken.stderr
    assert "slotPerWorker" not in taken.stdout


def test_check_uses_the_schema_of_the_cluster(cluster: Cluster, published: CrdSchema, tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    job.write_text(json.dumps(changed({"spec.slotPerWorker": 8})))
    done = CliRunner().invoke(main, ["check", str(job), "--kubeconfig", str(cluster.kubeconfig)])
    assert done.exit_code == 1
    assert f"spec.slotPerWorker: is not a field of an MPIJob ({published.origin}): kubectl rejects it" in done.stdout
    assert published.origin.startswith("the CRD of https://")
