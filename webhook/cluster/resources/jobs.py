"""Kubernetes Jobs whose names end with `-launcher`."""

from typing import Final

from webhook.cluster.owned import Owned, OwnedWire, owned
from webhook.cluster.resource import namespaced

# mpi-operator `launcherSuffix`
LAUNCHER_SUFFIX: Final = "-launcher"


def _record(decoded: OwnedWire) -> Owned | None:
    return owned(decoded) if decoded.metadata.name.endswith(LAUNCHER_SUFFIX) else None


JOBS = namespaced("jobs", "Job", "batch/v1", wire=OwnedWire, record=_record, metadata_only=True)
