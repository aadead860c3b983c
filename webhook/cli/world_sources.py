"""What the verdicts on jobs depend on, read from a file or from an API server.

Of a cluster only what the user may read is known. To be as good as the service it takes the rights of the optional
component `check-by-users`, and no others.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from webhook.api.review import UserInfo
from webhook.cli import files, job_world, published_schema
from webhook.cli.job_world import DENIED, POLICIES, JobWorld
from webhook.cli.policy import kept
from webhook.cli.snapshot_file import stored
from webhook.client import access_reviews
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import get, listed
from webhook.client.reading import read
from webhook.cluster.resource import KUEUE_NAMESPACE, WatchedPlace
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.policy import store
from webhook.policy.in_force import PolicySet

SELF: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def of_file(path: Path, *, policy_namespace: str) -> JobWorld:
    """The cluster in a file; ClusterError when it cannot be used."""
    found, errors = files.load([str(path)])
    if errors:
        raise ClusterError("\n".join(map(str, errors)))
    try:
        return job_world.of_objects(found, str(path), policy_namespace=policy_namespace)
    except SnapshotError as error:
        raise ClusterError(f"{path}: {error}") from None


async def of_cluster(
    api: Client, namespaces: Iterable[str | None], *, policy_namespace: str, with_schema: bool = True
) -> JobWorld:
    """What the user may read of a cluster; ClusterError when it cannot be used at all.

    None among the namespaces stands for that of the kubeconfig's context. What is stored needs no schema.
    """
    schema = await published_schema.of_cluster(api) if with_schema else None
    places = {WatchedPlace.OWN: policy_namespace, WatchedPlace.KUEUE: KUEUE_NAMESPACE}
    reading = await read(
        api, places=places, namespaces=sorted({each or api.namespace for each in namespaces}), more={"MPIJob": stored}
    )
    world = JobWorld(
        Snapshot(reading.documents()),
        schema,
        user=await _user(api),
        namespace=api.namespace,
        why=job_world.by_resource(reading.head.unknown),
        otherwise="it was not read",
    )
    await _read_policies(api, policy_namespace, world)
    return world


async def may_exempt(api: Client, namespace: str, rules: Iterable[str]) -> dict[str, bool]:
    """For each rule whether the user of `api` may exempt jobs from it."""
    return {rule: await access_reviews.has_right(api, access_reviews.exempting(namespace, rule)) for rule in rules}


async def _read_policies(api: Client, namespace: str, world: JobWorld) -> None:
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"
    try:
        found = await listed(api, path, labelSelector=f"{store.LABEL}=true")
        remembered = await get(api, f"{path}/{store.REMEMBERED}") or {}
    except ApiError as error:
        world.why = {**world.why, POLICIES: DENIED if error.status == 403 else str(error)}
        return
    layers, problems = kept.loaded(found, remembered)
    world.policies = PolicySet(layers)
    world.problems += problems


async def _user(api: Client) -> UserInfo | None:
    """Who one is for the API server; None where it does not say (before Kubernetes 1.28)."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await api.request("POST", SELF, review)
    except ApiError:
        return None
    info: dict[str, Any] = (answer.get("status") or {}).get("userInfo") or {}
    name = info.get("username")
    return UserInfo(name, groups=list(info.get("groups") or ())) if isinstance(name, str) and name else None
