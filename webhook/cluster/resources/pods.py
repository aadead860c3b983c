"""Pods that Kubeflow's operators made for jobs; the other pods of a cluster are many more, and change all the time."""

from typing import Final

from webhook.cluster.owned import OwnedWire, owned
from webhook.cluster.resource import namespaced

# https://github.com/kubeflow/mpi-operator/blob/v0.8.0/pkg/apis/kubeflow/v2beta1/constants.go
JOB_NAME: Final = "training.kubeflow.org/job-name"

PODS = namespaced("pods", "Pod", "v1", wire=OwnedWire, record=owned, metadata_only=True, label_selector=JOB_NAME)
