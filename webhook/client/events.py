"""Events for administrators and users, reported once by all replicas together."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote

from webhook import PROGRAM
from webhook.client.calls import ApiError
from webhook.client.limits import MAX_EVENT_CHARACTERS
from webhook.client.objects import Caller


async def write_event(
    api: Caller,
    namespace: str,
    about: Mapping[str, str],
    *,
    reason: str,
    message: str,
    kind: Literal["Normal", "Warning"],
    key: str,
) -> bool:
    """Write an Event about the object that `about` refers to (apiVersion, kind, name ...); ClusterError.

    The same `key` gives the same name: False where there is an Event already, of another replica for example.
    """
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['name'][:200]}.{digest}", "namespace": namespace},
        "involvedObject": {"namespace": namespace, **about},
        "reason": reason,
        "message": message[:MAX_EVENT_CHARACTERS],
        "type": kind,
        "source": {"component": PROGRAM},
        "reportingComponent": PROGRAM,
        "reportingInstance": PROGRAM,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    try:
        await api.request("POST", f"/api/v1/namespaces/{quote(namespace, safe='')}/events", event)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True
