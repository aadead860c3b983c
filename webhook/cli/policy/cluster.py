"""What a cluster has in force, and the jobs in it: from the API server, or from a file that kubectl wrote.

From the API server only what a command needs is read, in pages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from webhook.api import mpijob
from webhook.api.shape import ShapeError
from webhook.cli import files
from webhook.cli.policy import kept
from webhook.cli.policy.documents import mapping
from webhook.client import calls
from webhook.client.access import Access
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import get, listed
from webhook.client.reading import read
from webhook.cluster.limits import MAX_ANNOTATION_CHARACTERS
from webhook.cluster.resource import KUEUE_NAMESPACE, WatchedPlace
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.cluster.view import ABSENT, UNKNOWN, Answer, ClusterView, NothingKnown
from webhook.policy import store
from webhook.policy.layers import Layer
from webhook.policy.store import REMEMBERED

NAMESPACE_PATH: Final = "/api/v1/namespaces"


@dataclass(slots=True)
class ClusterPolicies:
    """The policies of a cluster, and what they are held against."""

    origin: str = ""
    """Where the layers come from, for people."""
    layers: tuple[Layer, ...] = ()
    """The policies in force."""
    problems: list[str] = field(default_factory=list)
    """Which ConfigMaps are broken, and what holds instead."""
    namespace: Namespace | Answer = UNKNOWN
    """What is known of the namespace that was asked for."""
    view: ClusterView = field(default_factory=NothingKnown)
    """What is known of all else."""
    jobs: list[bytes] = field(default_factory=list)
    """The stored MPIJobs, as JSON."""


def from_file(path: Path, *, policy_namespace: str, namespace: str = "") -> ClusterPolicies:
    """The cluster in a file; ClusterError when it cannot be used."""
    found, errors = files.load([str(path)])
    if errors:
        raise ClusterError("; ".join(map(str, errors)))
    documents = [manifest.document for manifest in found]
    cluster = ClusterPolicies(f"namespace {policy_namespace} of {path}")
    cluster.layers, cluster.problems = kept.in_force(found, policy_namespace)
    try:
        # A job that cannot be read is for the rule `schema`, and must not keep the others from being judged.
        cluster.view = Snapshot(document for document in documents if _is_usable(document))
    except SnapshotError as error:
        raise ClusterError(f"{path}: {error}") from None
    cluster.namespace = cluster.view.get(NAMESPACES, namespace)
    jobs = (m for m in found if (m.api_version, m.kind) == (mpijob.API_VERSION, "MPIJob"))
    cluster.jobs = [_job(job.document, job.namespace or "default") for job in jobs]
    return cluster


async def from_api(
    access: Access,
    *,
    policy_namespace: str,
    kueue_namespace: str = KUEUE_NAMESPACE,
    namespace: str = "",
    jobs: bool = False,
) -> ClusterPolicies:
    """A cluster: what is known of `namespace`, and with `jobs` all that is needed to judge them.

    Without a namespace these are all jobs of the cluster.

    ClusterError when something essential cannot be read.
    """
    api = await calls.connect(access)
    try:
        cluster = ClusterPolicies(f"namespace {policy_namespace} of the cluster at {api.host}")
        configmaps = f"{NAMESPACE_PATH}/{quote(policy_namespace, safe='')}/configmaps"
        policies = await listed(api, configmaps, labelSelector=f"{store.LABEL}=true")
        cluster.layers, problems = kept.loaded(policies, await get(api, f"{configmaps}/{REMEMBERED}") or {})
        cluster.problems += problems
        if namespace:
            cluster.namespace = await _namespace(api, namespace)
        if jobs:
            cluster.jobs = [_job(job) for job in await _jobs(api, namespace)]
            places = {WatchedPlace.OWN: policy_namespace, WatchedPlace.KUEUE: kueue_namespace}
            reading = await read(api, places=places, namespaces=[namespace] if namespace else [])
            cluster.problems += reading.problems
            cluster.view = Snapshot(reading.documents())
    finally:
        await api.close()
    return cluster


async def _namespace(api: Client, name: str) -> Namespace | Answer:
    found = await get(api, f"{NAMESPACE_PATH}/{quote(name, safe='')}")
    return ABSENT if found is None else _named(found)


def _named(found: Mapping[str, Any]) -> Namespace:
    metadata = mapping(found, "metadata")
    name = str(metadata.get("name"))
    labels, annotations = (
        {key: str(value) for key, value in mapping(metadata, part).items()} for part in ("labels", "annotations")
    )
    return Namespace(name, labels, {key: value[: MAX_ANNOTATION_CHARACTERS + 1] for key, value in annotations.items()})


async def _jobs(api: Client, namespace: str) -> list[dict[str, Any]]:
    try:
        return await listed(api, MPI_JOBS.path(mpijob.API_VERSION, quote(namespace, safe="")))
    except ApiError as error:
        if error.status == 404:
            raise ClusterError(f"the cluster at {api.host} knows no MPIJobs: their CRD is not installed") from None
        raise


def _is_usable(document: Mapping[str, Any]) -> bool:
    """False for a job that cannot be read."""
    if document["kind"] != "MPIJob":
        return True
    try:
        return bool(mpijob.decode(msgspec.json.encode(document)).metadata.name)
    except ShapeError:
        return False


def _job(job: dict[str, Any], namespace: str = "") -> bytes:
    """A stored job as JSON, in `namespace` where it names none."""
    metadata = job.get("metadata")
    if namespace and isinstance(metadata, dict):
        job = {**job, "metadata": {**metadata, "namespace": namespace}}
    return msgspec.json.encode(job)
