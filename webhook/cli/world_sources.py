"""Reads the inputs of verdicts on jobs from an API server. Objects that the user may not read are unknown."""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from webhook.api import mpijob
from webhook.api.crd_schema import CrdSchema, of_short_form, short_form
from webhook.api.review import UserInfo
from webhook.cli import job_world
from webhook.cli.files import Manifest, ManifestError
from webhook.cli.job_world import POLICIES, JobWorld
from webhook.cli.options import with_api
from webhook.cli.terminal import fail
from webhook.client import access_reviews
from webhook.client.access import Access
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import KubernetesObject, get, listed
from webhook.client.reading import Reading, read
from webhook.cluster.resource import KUEUE_NAMESPACE, Resource, WatchedPlace
from webhook.cluster.snapshot import SnapshotError
from webhook.policy import store

SELF: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
OPENAPI: Final = f"/openapi/v3/apis/{mpijob.API_VERSION}"
METADATA: Final = ("name", "namespace", "labels", "annotations", "uid", "ownerReferences", "deletionTimestamp")


def of_options(path: Path | None, access: Access, namespaces: Iterable[str | None], **how: Any) -> JobWorld:
    """The inputs from the file `path`, or from the cluster of `access`; the command ends on failure.

    `how` has the arguments of `of_cluster`.
    """
    if path is None:
        return with_api(access, lambda api: of_cluster(api, namespaces, **how))
    if access != Access():
        fail("--cluster cannot be combined with --kubeconfig, --context or --as")
    try:
        return job_world.of_file(path, policy_namespace=how["policy_namespace"])
    except ManifestError as error:
        fail(error)


async def of_cluster(
    api: Client,
    namespaces: Iterable[str | None],
    *,
    policy_namespace: str,
    resources: Collection[Resource[Any, Any]] = (),
    needed: Iterable[str] = (),
    with_schema: bool = True,
) -> JobWorld:
    """Read the inputs from a cluster; ClusterError if the cluster or a resource in `needed` cannot be read.

    None in `namespaces` is the namespace of the kubeconfig's context. Without `resources`, all resources are read.
    Verdicts on stored jobs do not need the schema.
    """
    schema = await published_schema(api) if with_schema else None
    within = sorted({namespace or api.namespace for namespace in namespaces})
    reading = await take(api, policy_namespace=policy_namespace, namespaces=within, resources=resources)
    for name in needed:
        for resource, why in reading.head.unknown.items():
            if resource.partition(" in ")[0] == name:
                raise ClusterError(f"{resource} cannot be read: {why}")
    objects = [Manifest("", document) for document in reading.documents()]
    try:
        world = job_world.of_objects(objects, f"the cluster at {api.host}", policy_namespace=policy_namespace)
    except SnapshotError as error:
        raise ClusterError(str(error)) from None
    world.schema, world.user, world.namespace = schema, await _user(api), api.namespace
    world.otherwise, world.unread = "it was not read", reading.problems
    return world


async def take(
    api: Client,
    *,
    policy_namespace: str,
    kueue_namespace: str = KUEUE_NAMESPACE,
    namespaces: Sequence[str] = (),
    resources: Collection[Resource[Any, Any]] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> Reading:
    """Read a cluster with its policies; ClusterError if the cluster cannot be read.

    Without `namespaces`, all namespaces are read. `tell` gets a line for each resource.
    """
    places = {WatchedPlace.OWN: policy_namespace, WatchedPlace.KUEUE: kueue_namespace}
    more = {"MPIJob": stored}
    reading = await read(api, places=places, namespaces=namespaces, more=more, resources=resources, tell=tell)
    path = f"/api/v1/namespaces/{quote(policy_namespace, safe='')}/configmaps"
    try:
        configmaps = await listed(api, path, labelSelector=f"{store.LABEL}=true")
        remembered = await get(api, f"{path}/{store.REMEMBERED}")
    except ApiError as error:
        reading.head.unknown[POLICIES] = f"forbidden: {error}" if error.status == 403 else str(error)
        reading.problems.append(f"the policies are unknown: {error}")
        return reading
    for policy in configmaps:
        reading.add(_configmap(policy, {store.LABEL: "true"}, keys=(store.KEY,)))
    if remembered:
        reading.add(_configmap(remembered, {}, keys=remembered.get("data") or ()))
    tell(f"policies: {len(configmaps)}")
    return reading


def _configmap(configmap: KubernetesObject, labels: dict[str, str], *, keys: Iterable[str]) -> KubernetesObject:
    kept = ("name", "namespace", "resourceVersion")
    metadata = {key: configmap["metadata"][key] for key in kept if key in configmap["metadata"]}
    data = {key: configmap["data"][key] for key in keys if key in (configmap.get("data") or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "labels": labels}, "data": data}


def stored(job: KubernetesObject) -> KubernetesObject:
    """The parts of a stored job that verdicts need. Updates are compared with the whole spec."""
    mpijob.decode(msgspec.json.encode(job))  # raises for an invalid job, which would make the whole file unusable
    return {"metadata": {key: job["metadata"][key] for key in METADATA if key in job["metadata"]}, "spec": job["spec"]}


async def published_schema(api: Client) -> CrdSchema:
    """The schema of MPIJobs that the API server publishes to all users; ClusterError without this schema."""
    try:
        document = await api.request("GET", OPENAPI)
    except ApiError as error:
        if error.status != 404:
            raise
        document = {}
    schemas = document.get("components", {}).get("schemas", {})
    for schema in schemas.values():
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        if any(kind.get("kind") == "MPIJob" for kind in kinds):
            return CrdSchema(f"the CRD of {api.host}", of_short_form(short_form(schema, schemas)))
    raise ClusterError(f"the cluster at {api.host} publishes no schema of MPIJobs")


async def may_exempt(api: Client, namespace: str, rules: Iterable[str]) -> dict[str, bool]:
    """For each rule, true if the user of `api` may exempt jobs from the rule."""
    return {rule: await access_reviews.has_right(api, access_reviews.exempting(namespace, rule)) for rule in rules}


async def _user(api: Client) -> UserInfo | None:
    """The user who sends the requests of `api`; None for Kubernetes before 1.28."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await api.request("POST", SELF, review)
    except ApiError:
        return None
    info: dict[str, Any] = (answer.get("status") or {}).get("userInfo") or {}
    name = info.get("username")
    return UserInfo(name, groups=list(info.get("groups") or ())) if isinstance(name, str) and name else None
