"""TrainJobs of Kubeflow Trainer and their pods: for how long, and how much of, what is reserved for one counts.

They are watched only where `serve --trainer` asks for it.
"""

import sys
from typing import Any, Final

import msgspec

from webhook.api import trainer
from webhook.cluster.resource import Metadata, Resource, Wire, namespaced
from webhook.cluster.training_runtimes import RUNTIMES


class TrainJobRecord(msgspec.Struct, frozen=True, gc=False):
    """A TrainJob that exists."""

    namespace: str
    name: str
    uid: str
    over: bool = False
    """It ended, or is being deleted: it takes nothing more."""


class TrainJobPod(msgspec.Struct, frozen=True, gc=False):
    """A pod of a TrainJob."""

    namespace: str
    job: str
    replicated_job: str


class _JobMetadata(Metadata):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Job(Wire):
    metadata: _JobMetadata
    status: _Status | None = None


class _Labels(msgspec.Struct, omit_defaults=True):
    job_set: str = msgspec.field(default="", name=trainer.JOB_SET_NAME)
    replicated_job: str = msgspec.field(default="", name=trainer.REPLICATED_JOB_NAME)


class _PodMetadata(Metadata):
    labels: _Labels | None = None


class _Pod(Wire):
    metadata: _PodMetadata


def _job(found: _Job) -> TrainJobRecord:
    metadata, conditions = found.metadata, (found.status and found.status.conditions) or []
    ended = any(each.type in trainer.ENDS and each.status == "True" for each in conditions)
    over = ended or metadata.deletion_timestamp is not None
    return TrainJobRecord(sys.intern(metadata.namespace), metadata.name, metadata.uid, over)


def _pod(found: _Pod) -> TrainJobPod:
    """A JobSet has the name of its TrainJob."""
    labels = found.metadata.labels or _Labels()
    return TrainJobPod(
        sys.intern(found.metadata.namespace), sys.intern(labels.job_set), sys.intern(labels.replicated_job)
    )


TRAIN_JOBS: Final = namespaced("trainjobs", trainer.TRAIN_JOB, trainer.API_VERSION, wire=_Job, record=_job)
TRAIN_JOB_PODS: Final = namespaced(
    "pods",
    "Pod",
    "v1",
    wire=_Pod,
    record=_pod,
    metadata_only=True,
    label_selector=trainer.JOB_SET_NAME,
    alias="train-job-pods",
)
OF_TRAINER: Final[tuple[Resource[Any, Any], ...]] = (*RUNTIMES, TRAIN_JOBS, TRAIN_JOB_PODS)
