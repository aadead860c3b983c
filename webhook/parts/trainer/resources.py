"""TrainJobs of Kubeflow Trainer and their pods: how long, and how much of, a TrainJob's reservation counts.

They are watched only with `serve --trainer`.

The JobSet's spec of runtimes with an MPI policy is cached, since the pods of TrainJobs come from its templates. Users
may make any number of runtimes of any size, so there is a budget; a runtime beyond it is unknown.
"""

import sys
from typing import Any, Final

import msgspec

from webhook.api.mpijob import JobCondition
from webhook.api.pod import Presence
from webhook.cluster.budget import Budget
from webhook.cluster.resource import Metadata, Resource, Wire, cluster_wide, namespaced
from webhook.parts.trainer import kinds
from webhook.parts.trainer.limits import MAX_NAMESPACE_RUNTIMES_BYTES, MAX_RUNTIME_BYTES, MAX_RUNTIMES_BYTES


class TrainingRuntime(msgspec.Struct, frozen=True):
    """A runtime of a namespace, or of the cluster."""

    namespace: str
    """Empty for a runtime of the cluster."""
    name: str
    spec: bytes
    """JSON of the relevant fields; empty unless the runtime is for MPI."""


class _MPI(msgspec.Struct):
    mpi: Presence | None = None


class _Spec(msgspec.Struct, rename="camel"):
    ml_policy: _MPI | None = None


class _Policy(msgspec.Struct, rename="camel"):
    mpi: msgspec.Raw
    num_nodes: msgspec.Raw = msgspec.Raw(b"null")


class _JobSet(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _Kept(msgspec.Struct, rename="camel"):
    """The fields of a spec that rules use."""

    ml_policy: _Policy
    template: _JobSet | None = None


class _Runtime(Wire):
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_decoder: Final = msgspec.json.Decoder(_Spec)
_kept: Final = msgspec.json.Decoder(_Kept)


def _record(found: _Runtime) -> TrainingRuntime:
    policy = _decoder.decode(found.spec).ml_policy
    of_mpi = policy is not None and policy.mpi is not None
    spec = msgspec.json.encode(_kept.decode(found.spec)) if of_mpi else b""
    return TrainingRuntime(found.metadata.namespace, found.metadata.name, spec)


_BUDGET: Final[Budget[TrainingRuntime]] = Budget(
    size=lambda runtime: len(runtime.spec),
    of_one=MAX_RUNTIME_BYTES,
    of_group=MAX_NAMESPACE_RUNTIMES_BYTES,
    in_all=MAX_RUNTIMES_BYTES,
)

TRAINING_RUNTIMES: Final = namespaced(
    "trainingruntimes", kinds.RUNTIME, kinds.API_VERSION, wire=_Runtime, record=_record, budget=_BUDGET
)
CLUSTER_TRAINING_RUNTIMES: Final = cluster_wide(
    "clustertrainingruntimes",
    kinds.CLUSTER_RUNTIME,
    kinds.API_VERSION,
    wire=_Runtime,
    record=_record,
    budget=_BUDGET,
)
RUNTIMES: Final[tuple[Resource[Any, Any], ...]] = (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)


class TrainJobRecord(msgspec.Struct, frozen=True, gc=False):
    """An existing TrainJob."""

    namespace: str
    name: str
    uid: str
    over: bool = False
    """It ended, or is being deleted: it no longer uses anything."""


class TrainJobPod(msgspec.Struct, frozen=True, gc=False):
    """A pod of a TrainJob."""

    namespace: str
    job: str
    replicated_job: str


class _JobMetadata(Metadata):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Status(msgspec.Struct):
    conditions: list[JobCondition] | None = None


class _Job(Wire):
    metadata: _JobMetadata
    status: _Status | None = None


class _Labels(msgspec.Struct, omit_defaults=True):
    job_set: str = msgspec.field(default="", name=kinds.JOB_SET_NAME)
    replicated_job: str = msgspec.field(default="", name=kinds.REPLICATED_JOB_NAME)


class _PodMetadata(Metadata):
    labels: _Labels | None = None


class _Pod(Wire):
    metadata: _PodMetadata


def _job(found: _Job) -> TrainJobRecord:
    metadata, conditions = found.metadata, (found.status and found.status.conditions) or []
    ended = any(each.type in kinds.ENDS and each.status == "True" for each in conditions)
    over = ended or metadata.deletion_timestamp is not None
    return TrainJobRecord(sys.intern(metadata.namespace), metadata.name, metadata.uid, over)


def _pod(found: _Pod) -> TrainJobPod:
    """A JobSet has the name of its TrainJob."""
    labels = found.metadata.labels or _Labels()
    return TrainJobPod(
        sys.intern(found.metadata.namespace), sys.intern(labels.job_set), sys.intern(labels.replicated_job)
    )


TRAIN_JOBS: Final = namespaced("trainjobs", kinds.TRAIN_JOB, kinds.API_VERSION, wire=_Job, record=_job)
TRAIN_JOB_PODS: Final = namespaced(
    "pods",
    "Pod",
    "v1",
    wire=_Pod,
    record=_pod,
    metadata_only=True,
    label_selector=kinds.JOB_SET_NAME,
    alias="train-job-pods",
)
WATCHED: Final[tuple[Resource[Any, Any], ...]] = (*RUNTIMES, TRAIN_JOBS, TRAIN_JOB_PODS)
