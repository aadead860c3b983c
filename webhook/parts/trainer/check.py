"""The verdict on TrainJobs and runtimes of Kubeflow Trainer in files, as `serve --trainer` gives it for new ones."""

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
from webhook.cluster.view import UNKNOWN, Answer, ClusterView, NotingView
from webhook.parts.trainer import kinds, pipeline
from webhook.parts.trainer.resources import CLUSTER_TRAINING_RUNTIMES, RUNTIMES, TRAINING_RUNTIMES

_OF_RUNTIMES: Mapping[str, Resource[Any, Any]] = {each.kind: each for each in RUNTIMES}


def concerns(manifest: Manifest) -> bool:
    """Whether it is a TrainJob, or a runtime for MPI."""
    if manifest.api_version != kinds.API_VERSION:
        return False
    of_mpi = bool(at(manifest.document, "spec", "mlPolicy", "mpi"))
    return manifest.kind == kinds.TRAIN_JOB or (manifest.kind in _OF_RUNTIMES and of_mpi)


class Runtimes:
    """A ClusterView with these runtimes, the first of each name, instead of those of `view`."""

    def __init__(self, view: ClusterView, manifests: Iterable[Manifest], namespace: str) -> None:
        self._view, self.all, self.within, self.groups = view, view.all, view.within, view.groups
        self.not_served = view.not_served
        self._known: dict[tuple[str, Hashable], Any] = {}
        for each in manifests:
            resource = _OF_RUNTIMES.get(each.kind)
            if resource is None or each.api_version != kinds.API_VERSION:
                continue
            document = each.created_in(_namespace(each, namespace))
            try:
                record = resource.project(msgspec.json.encode(document))
            except (msgspec.DecodeError, ValueError):
                continue  # it has its own verdict
            self._known.setdefault((each.kind, resource.key(_namespace(each, namespace), each.name)), record)

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        if resource.kind in _OF_RUNTIMES:
            found: T | Answer = self._known.get((resource.kind, key), UNKNOWN)
            return found
        return self._view.get(resource, key)


def judge(
    found: Sequence[Manifest], world: JobWorld, namespace: str, cluster: Path | None, access: Access
) -> Callable[[Manifest], Verdict | None]:
    """Judges the objects in `found`. Runtimes among them precede those of the cluster."""
    more: list[Manifest] = []
    if cluster:
        more, _ = files.load([str(cluster)])
    elif access != Access():
        jobs = [each for each in found if each.kind == kinds.TRAIN_JOB and concerns(each)]
        more = options.with_api(access, lambda api: of_cluster(api, jobs, namespace))
    return partial(check, world=world, runtimes=[*found, *more], namespace=namespace)


def check(manifest: Manifest, world: JobWorld, *, runtimes: Iterable[Manifest], namespace: str) -> Verdict | None:
    """The verdict on a TrainJob or runtime, None for anything else; `namespace` is for those that name none."""
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
    """The runtimes that these TrainJobs name, as far as they may be read."""
    paths = {}
    for each in jobs:
        reference = at(each.document, "spec", "runtimeRef")
        of_namespace = reference.get("kind") == kinds.RUNTIME
        resource: Resource[Any, Any] = TRAINING_RUNTIMES if of_namespace else CLUSTER_TRAINING_RUNTIMES
        within = quote(each.namespace or namespace, safe="") if of_namespace else ""
        path = f"{resource.path(kinds.API_VERSION, within)}/{quote(str(reference.get('name')), safe='')}"
        paths[path] = resource.kind
    manifests = []
    for path, kind in paths.items():
        try:
            document = await get(api, path)
        except ApiError:
            continue  # no verdict without the right to read it
        if document is not None:
            manifests.append(Manifest(path, {**document, "kind": kind, "apiVersion": kinds.API_VERSION}))
    return manifests


def _namespace(manifest: Manifest, otherwise: str) -> str:
    return "" if manifest.kind == kinds.CLUSTER_RUNTIME else manifest.namespace or otherwise
