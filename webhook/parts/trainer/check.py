"""Verdicts on TrainJobs and runtimes in files."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from webhook.api.review import GroupVersionKind
from webhook.api.untyped import at
from webhook.cli import files, job_check, options
from webhook.cli.files import Manifest
from webhook.cli.job_verdict import Verdict
from webhook.cli.job_world import JobWorld
from webhook.client.access import Access
from webhook.client.calls import ApiError, Client
from webhook.client.objects import get
from webhook.cluster.resource import K, Resource, T
from webhook.cluster.view import UNKNOWN, Answer, ClusterView, NotingView, ViewOf
from webhook.parts.trainer import kinds, pipeline
from webhook.parts.trainer.resources import CLUSTER_TRAINING_RUNTIMES, RUNTIMES, TRAINING_RUNTIMES

_BY_KIND: Mapping[str, Resource[Any, Any]] = {resource.kind: resource for resource in RUNTIMES}


def concerns(manifest: Manifest) -> bool:
    if manifest.api_version != kinds.API_VERSION:
        return False
    of_mpi = bool(at(manifest.document, "spec", "mlPolicy", "mpi"))
    return manifest.kind == kinds.TRAIN_JOB or (manifest.kind in _BY_KIND and of_mpi)


class Runtimes(ViewOf):
    """Replaces the runtimes of `view` by the runtimes in `manifests`. If two have the same name, the first is used."""

    def __init__(self, view: ClusterView, manifests: Iterable[Manifest], namespace: str) -> None:
        super().__init__(view)
        self._records: dict[tuple[str, Hashable], Any] = {}
        for manifest in manifests:
            resource = _BY_KIND.get(manifest.kind)
            if resource is None or manifest.api_version != kinds.API_VERSION:
                continue
            document = manifest.created_in(_namespace(manifest, namespace))
            try:
                record = resource.project(msgspec.json.encode(document))
            except (msgspec.DecodeError, ValueError):
                continue  # `check` reports invalid runtimes
            key = resource.key(_namespace(manifest, namespace), manifest.name)
            self._records.setdefault((manifest.kind, key), record)

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        if resource.kind in _BY_KIND:
            record: T | Answer = self._records.get((resource.kind, key), UNKNOWN)
            return record
        return super().get(resource, key)


def judge(
    manifests: Sequence[Manifest], world: JobWorld, namespace: str, cluster: Path | None, access: Access
) -> Callable[[Manifest], Verdict | None]:
    """Returns a function that judges an object. Runtimes in `manifests` take precedence over the cluster's."""
    in_cluster: list[Manifest] = []
    if cluster:
        in_cluster, _ = files.load([str(cluster)])
    elif access != Access():
        jobs = [manifest for manifest in manifests if manifest.kind == kinds.TRAIN_JOB and concerns(manifest)]
        in_cluster = options.with_api(access, lambda api: of_cluster(api, jobs, namespace))
    return partial(check, world=world, runtimes=[*manifests, *in_cluster], namespace=namespace)


def check(manifest: Manifest, world: JobWorld, *, runtimes: Iterable[Manifest], namespace: str) -> Verdict | None:
    """The verdict on a TrainJob or runtime; None for other objects."""
    if not concerns(manifest):
        return None
    namespace = _namespace(manifest, namespace)
    view = NotingView(Runtimes(world.cluster, runtimes, namespace))
    group, _, version = kinds.API_VERSION.partition("/")
    kind = GroupVersionKind(group, version, manifest.kind)
    request = job_check.review(manifest, namespace=namespace, user=world.user, kind=kind)
    policy = world.policy(namespace)
    decide = partial(pipeline.judge, request, policy=policy, view=view, today=world.today)
    decision = decide()
    if decision.requested and world.may_exempt is not None:
        decision = decide(granted=world.may_exempt(namespace, decision.requested))
    return Verdict(manifest, namespace, decision, unknown=frozenset(view.unknown), policy=policy)


async def of_cluster(api: Client, jobs: Iterable[Manifest], namespace: str) -> list[Manifest]:
    """The jobs' runtimes, except runtimes that the user may not read."""
    resources = {}
    for job in jobs:
        reference = at(job.document, "spec", "runtimeRef")
        of_namespace = reference.get("kind") == kinds.RUNTIME
        resource: Resource[Any, Any] = TRAINING_RUNTIMES if of_namespace else CLUSTER_TRAINING_RUNTIMES
        within = quote(job.namespace or namespace, safe="") if of_namespace else ""
        path = f"{resource.path(kinds.API_VERSION, within)}/{quote(str(reference.get('name')), safe='')}"
        resources[path] = resource
    manifests = []
    for path, resource in resources.items():
        try:
            document = await get(api, path)
        except ApiError:
            continue
        if document is not None:
            manifests.append(Manifest(path, {**document, "kind": resource.kind, "apiVersion": kinds.API_VERSION}))
    return manifests


def _namespace(manifest: Manifest, default: str) -> str:
    return "" if manifest.kind == kinds.CLUSTER_RUNTIME else manifest.namespace or default
