"""Until when the keys of ended jobs have been removed, so that a new replica does not begin with every job there is.

It is kept in a Lease in the service's own namespace, where the service has the right to write Leases anyway.
"""

from typing import Any, Final
from urllib.parse import quote

from webhook import PROGRAM
from webhook.client.calls import ApiError, ClusterError
from webhook.client.objects import get
from webhook.companions.paced import PacedClient

NAME: Final = f"{PROGRAM}-key-removal"
ANNOTATION: Final = "training.openshift.io/removed-until"


class RemovedUntil:
    """A moment in RFC 3339, in UTC; empty where none is remembered. Whatever fails only means more work next time."""

    def __init__(self, api: PacedClient, namespace: str) -> None:
        self._api = api
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"

    async def read(self) -> str:
        """What the last one has written."""
        try:
            found = await get(self._api, f"{self._leases}/{NAME}")
        except ClusterError:
            return ""
        annotations = (found or {}).get("metadata", {}).get("annotations") or {}
        return str(annotations.get(ANNOTATION, ""))

    async def write(self, moment: str) -> None:
        """Remember `moment`, unless a later one is remembered or another replica is faster."""
        try:
            found = await get(self._api, f"{self._leases}/{NAME}")
            metadata: dict[str, Any] = {"name": NAME, "annotations": {ANNOTATION: moment}}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
            if found is None:
                await self._api.request("POST", self._leases, body)
            elif ((found["metadata"].get("annotations") or {}).get(ANNOTATION) or "") < moment:
                metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
                await self._api.request("PUT", f"{self._leases}/{NAME}", body)
        except ApiError as error:
            if error.status not in {403, 404, 409}:
                raise
