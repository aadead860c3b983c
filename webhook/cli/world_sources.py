"""Everything that the verdicts on jobs depend on, read from an API server.

Only what the user may read of a cluster is known. The rights of the optional component `check-by-users` give the same
verdicts as the service, and no other rights are necessary.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from webhook.api import mpijob
from webhook.api.crd_schema import CrdSchema, of_short_form, short_form
from webhook.api.review import UserInfo
from webhook.cli import job_world
from webhook.cli.files import Manifest
from webhook.cli.job_world import POLICIES, JobWorld
from webhook.client import access_reviews
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import KubernetesObject, get, listed
from webhook.client.reading import Reading, read
from webhook.cluster.resource import KUEUE_NAMESPACE, Resource, WatchedPlace
from webhook.cluster.snapshot import SnapshotError
from webhook.policy import store

SELF: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
OPENAPI: Final = f"/openapi/v3/apis/{mpijob.API_VERSION}"
# No verdict depends on the rest of the metadata. The annotations show what kubectl applied.
KEPT: Final = ("name", "namespace", "labels", "annotations", "uid", "ownerReferences", "deletionTimestamp")


async def of_cluster(
    api: Client,
    namespaces: Iterable[str | None],
    *,
    policy_namespace: str,
    resources: Collection[Resource[Any, Any]] = (),
    needed: Iterable[str] = (),
    with_schema: bool = True,
) -> JobWorld:
    """The part of a cluster that the user may read, limited to `resources` if given.

    ClusterError if it cannot be used at all, or a resource in `needed` cannot be read. None among the namespaces stands
    for that of the kubeconfig's context. Stored jobs need no schema.
    """
    schema = await published_schema(api) if with_schema else None
    within = sorted({each or api.namespace for each in namespaces})
    reading = await take(api, policy_namespace=policy_namespace, namespaces=within, resources=resources)
    for name in needed:
        for what, why in reading.head.unknown.items():
            if what.partition(" in ")[0] == name:
                raise ClusterError(f"{what} cannot be read: {why}")
    found = [Manifest("", each) for each in reading.documents()]
    try:
        world = job_world.of_objects(found, f"the cluster at {api.host}", policy_namespace=policy_namespace)
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
    """Read a cluster with its policies, in all namespaces or in these; ClusterError if it cannot be used."""
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


def _configmap(found: KubernetesObject, labels: dict[str, str], *, keys: Iterable[str]) -> KubernetesObject:
    """A ConfigMap with only this data."""
    metadata = {
        key: found["metadata"][key] for key in ("name", "namespace", "resourceVersion") if key in found["metadata"]
    }
    data = {key: found["data"][key] for key in keys if key in (found.get("data") or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "labels": labels}, "data": data}


def stored(job: KubernetesObject) -> KubernetesObject:
    """Stored jobs with their whole spec, not only the fields that rules read: an update is judged by all of it."""
    mpijob.decode(msgspec.json.encode(job))  # a job that cannot be read would make the file unusable
    return {"metadata": {key: job["metadata"][key] for key in KEPT if key in job["metadata"]}, "spec": job["spec"]}


async def published_schema(api: Client) -> CrdSchema:
    """The schema of MPIJobs that the API server publishes to all users; ClusterError if it has none."""
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
    """For each rule, whether the user of `api` may exempt jobs from it."""
    return {rule: await access_reviews.has_right(api, access_reviews.exempting(namespace, rule)) for rule in rules}


async def _user(api: Client) -> UserInfo | None:
    """The user as the API server knows it; None if it does not say (before Kubernetes 1.28)."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await api.request("POST", SELF, review)
    except ApiError:
        return None
    info: dict[str, Any] = (answer.get("status") or {}).get("userInfo") or {}
    name = info.get("username")
    return UserInfo(name, groups=list(info.get("groups") or ())) if isinstance(name, str) and name else None
