"""Pods that Kubeflow's operators created for jobs."""

from typing import Final

import msgspec

from webhook.cluster.owned import Owned, OwnedMetadata, OwnedWire, owned
from webhook.cluster.resource import namespaced

# https://github.com/kubeflow/mpi-operator/blob/v0.8.0/pkg/apis/kubeflow/v2beta1/constants.go
JOB_NAME: Final = "training.kubeflow.org/job-name"


class _Labels(msgspec.Struct, omit_defaults=True):
    job_name: str | None = msgspec.field(default=None, name=JOB_NAME)


class _Metadata(OwnedMetadata):
    labels: _Labels | None = None


class PodWire(OwnedWire):
    """A pod, with only its metadata."""

    metadata: _Metadata

    @property
    def of_operator(self) -> bool:
        """Whether an operator of Kubeflow created the pod."""
        labels = self.metadata.labels
        return labels is not None and labels.job_name is not None


def _record(decoded: PodWire) -> Owned | None:
    return owned(decoded) if decoded.of_operator else None  # a snapshot file may contain other pods


PODS = namespaced("pods", "Pod", "v1", wire=PodWire, record=_record, metadata_only=True, label_selector=JOB_NAME)
