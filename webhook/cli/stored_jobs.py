"""Reads one job or all jobs of a namespace. A missing job gets an error with a hint."""

from typing import Final
from urllib.parse import quote

from webhook.api import mpijob
from webhook.api.names import closest_name
from webhook.cli.limits import MAX_NAMES_LISTED
from webhook.client.calls import Client, ClusterError
from webhook.client.objects import KubernetesObject, get, listed

JOBS: Final = f"/apis/{mpijob.API_VERSION}/namespaces/%s/mpijobs"


async def stored_jobs(api: Client, namespace: str, name: str) -> list[KubernetesObject]:
    """The job `name`, or all jobs of the namespace if `name` is empty; ClusterError if the job does not exist."""
    path = JOBS % quote(namespace, safe="")
    if not name:
        return await listed(api, path)
    job = await get(api, f"{path}/{quote(name, safe='')}")
    if job is None:
        raise ClusterError(await _not_found(api, namespace, name))
    return [job]


async def _not_found(api: Client, namespace: str, name: str) -> str:
    """The error for a missing job, with a similar name or with the names that exist."""
    path = JOBS % quote(namespace, safe="")
    try:
        names = [job["metadata"]["name"] for job in await listed(api, path, metadata_only=True)]
    except ClusterError:
        return f"there is no MPIJob {namespace}/{name}"
    if names:
        near = closest_name(name, names)
        more = f" and {len(names) - MAX_NAMES_LISTED} more" if len(names) > MAX_NAMES_LISTED else ""
        listed_names = ", ".join(sorted(names)[:MAX_NAMES_LISTED])
        hint = f"did you mean {near}?" if near else f"the namespace has {listed_names}{more}"
        return f"there is no MPIJob {namespace}/{name}; {hint}"
    try:
        spaces = [each["metadata"]["name"] for each in await listed(api, "/api/v1/namespaces", metadata_only=True)]
    except ClusterError:
        return f"there is no MPIJob in namespace {namespace}"
    if namespace in spaces:
        return f"there is no MPIJob in namespace {namespace}"
    near = closest_name(namespace, spaces)
    return f"there is no namespace {namespace}{f'; did you mean {near}?' if near else ''}"
