"""Reads one job or all jobs of a namespace."""

from typing import Final
from urllib.parse import quote

from webhook.api import mpijob
from webhook.api.names import closest_name
from webhook.cli.limits import MAX_NAMES_LISTED
from webhook.client.calls import Client, ClusterError
from webhook.client.objects import KubernetesObject, get, listed

JOBS: Final = f"/apis/{mpijob.API_VERSION}/namespaces/%s/mpijobs"


async def stored_jobs(api: Client, namespace: str, name: str) -> list[KubernetesObject]:
    """The job `name`, or all jobs if `name` is empty. For a missing job, ClusterError suggests existing names."""
    path = JOBS % quote(namespace, safe="")
    if not name:
        return await listed(api, path)
    job = await get(api, f"{path}/{quote(name, safe='')}")
    if job is None:
        raise ClusterError(await _not_found(api, namespace, name))
    return [job]


async def _not_found(api: Client, namespace: str, name: str) -> str:
    try:
        names = await _names(api, JOBS % quote(namespace, safe=""))
    except ClusterError:
        return f"there is no MPIJob {namespace}/{name}"
    if names:
        near = closest_name(name, names)
        more = f" and {len(names) - MAX_NAMES_LISTED} more" if len(names) > MAX_NAMES_LISTED else ""
        listed_names = ", ".join(sorted(names)[:MAX_NAMES_LISTED])
        hint = f"did you mean {near}?" if near else f"the namespace has {listed_names}{more}"
        return f"there is no MPIJob {namespace}/{name}; {hint}"
    try:
        namespaces = await _names(api, "/api/v1/namespaces")
    except ClusterError:
        namespaces = [namespace]
    if namespace in namespaces:
        return f"there is no MPIJob in namespace {namespace}"
    near = closest_name(namespace, namespaces)
    return f"there is no namespace {namespace}{f'; did you mean {near}?' if near else ''}"


async def _names(api: Client, path: str) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in await listed(api, path, metadata_only=True)]
