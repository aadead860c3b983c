"""Pods that no Kubeflow operator made and that have the name of a worker.

Most of a cluster's pods are of this kind, and only one rule uses them. So the service does not wait for their list, and
they are unknown until then. The API server sends only metadata, and pods with other names are dropped.
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
