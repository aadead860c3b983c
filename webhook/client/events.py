"""Events in the service's own namespace: what an administrator should know, reported once by all replicas together."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from webhook import PROGRAM
from webhook.client.limits import MAX_EVENT_CHARACTERS


def event(
    namespace: str,
    about: Mapping[str, str],
    *,
    reason: str,
    message: str,
    kind: Literal["Normal", "Warning"],
    key: str,
) -> dict[str, Any]:
    """An Event about the object that `about` refers to (apiVersion, kind, name ...).

    The same `key` gives the same name: a second Event, from another replica, is then a conflict (409).
    """
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
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
