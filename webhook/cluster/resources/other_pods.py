"""Pods that are named like a worker, but that no operator of Kubeflow created.

The API server sends the metadata of all pods without an operator's label. The service drops the pods that are not named
like a worker. The list may be long, and only one rule uses it, so the service is ready before the list is complete.
"""

import re
from typing import Final

from webhook.cluster.owned import Owned, owned
from webhook.cluster.resource import namespaced
from webhook.cluster.resources.pods import JOB_NAME, PodWire

# mpi-operator `workerName`
_WORKER: Final = re.compile(r".-worker-\d+$")


def _record(decoded: PodWire) -> Owned | None:
    return owned(decoded) if _WORKER.search(decoded.metadata.name) and not decoded.of_operator else None


OTHER_PODS = namespaced(
    "pods",
    "Pod",
    "v1",
    wire=PodWire,
    record=_record,
    metadata_only=True,
    label_selector=f"!{JOB_NAME}",
    alias="other-pods",
    awaited=False,
)
