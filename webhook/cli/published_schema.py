"""The schema of MPIJobs of a cluster: what its API server publishes, which everybody may read."""

from typing import Final

from webhook.api.crd_schema import CrdSchema, of_short_form, short_form
from webhook.api.mpijob import API_VERSION
from webhook.client.calls import ApiError, Client, ClusterError

OPENAPI: Final = f"/openapi/v3/apis/{API_VERSION}"


async def of_cluster(api: Client) -> CrdSchema:
    """That of the CRD in a cluster; ClusterError where it has none."""
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
