"""Pods that no operator of Kubeflow's made, of which those count that have the name of a worker.

They are most of a cluster's pods, and one rule asks about them, so nobody waits for them: until they are read they are
unknown. Only metadata is sent, and nothing is kept of those with other names.
"""

import re
from typing import Final

from webhook.cluster.owned import Owned, owned
from webhook.cluster.resource import namespaced
from webhook.cluster.resources.pods import JOB_NAME, PodWire

# mpi-operator `workerName`
_WORKER: Final = re.compile(r".-worker-\d+$")


def _record(found: PodWire) -> Owned | None:
    return owned(found) if _WORKER.search(found.metadata.name) and not found.of_operator else None


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
