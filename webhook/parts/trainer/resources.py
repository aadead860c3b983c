"""Objects of Kubeflow Trainer that `serve --trainer` watches: runtimes, TrainJobs and the pods of TrainJobs.

TrainJobs get their pods from the JobSet of their runtime. Users may create any number of runtimes of any size, so the
cache has a budget. A runtime beyond the budget is unknown. Reservations of quota depend on TrainJobs and their pods.
"""

import sys
from typing import Any, Final

import msgspec

from webhook.api.mpijob import JobCondition
from webhook.cluster.budget import Budget
from webhook.cluster.resource import Metadata, Resource, Wire, cluster_wide, namespaced
from webhook.parts.trainer import kinds
from webhook.parts.trainer.limits import MAX_NAMESPACE_RUNTIMES_BYTES, MAX_RUNTIME_BYTES, MAX_RUNTIMES_BYTES


class TrainingRuntime(msgspec.Struct, frozen=True):
    """A TrainingRuntime or ClusterTrainingRuntime."""

    namespace: str
    """The runtime's namespace; empty for a ClusterTrainingRuntime."""
    name: str
    spec: bytes
    """JSON of the fields that rules use; empty if the runtime has no MPI policy."""


class _Policy(msgspec.Struct, rename="camel"):
    mpi: msgspec.Raw = msgspec.Raw(b"null")
    num_nodes: msgspec.Raw = msgspec.Raw(b"null")


class _JobSet(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _UsedFields(msgspec.Struct, rename="camel"):
    ml_policy: _Policy | None = None
    template: _JobSet | None = None


class _Runtime(Wire):
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_used_fields: Final = msgspec.json.Decoder(_UsedFields)


def _record(runtime: _Runtime) -> TrainingRuntime:
    used = _used_fields.decode(runtime.spec)
    of_mpi = used.ml_policy is not None and bytes(used.ml_policy.mpi) != b"null"
    spec = msgspec.json.encode(used) if of_mpi else b""
    return TrainingRuntime(runtime.metadata.namespace, runtime.metadata.name, spec)


_BUDGET: Final[Budget[TrainingRuntime]] = Budget(
    size=lambda runtime: len(runtime.spec),
    per_record=MAX_RUNTIME_BYTES,
    per_group=MAX_NAMESPACE_RUNTIMES_BYTES,
    total=MAX_RUNTIMES_BYTES,
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
    """A TrainJob in the cluster."""

    namespace: str
    name: str
    uid: str
    over: bool = False
    """Whether the TrainJob has ended or is being deleted."""


class TrainJobPod(msgspec.Struct, frozen=True, gc=False):
    """A pod of a TrainJob."""

    namespace: str
    job: str
    """The name of the TrainJob and of its JobSet."""
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


def _job(job: _Job) -> TrainJobRecord:
    metadata, conditions = job.metadata, (job.status and job.status.conditions) or []
    ended = any(condition.type in kinds.ENDS and condition.status == "True" for condition in conditions)
    over = ended or metadata.deletion_timestamp is not None
    return TrainJobRecord(sys.intern(metadata.namespace), metadata.name, metadata.uid, over)


def _pod(pod: _Pod) -> TrainJobPod:
    labels = pod.metadata.labels or _Labels()
    return TrainJobPod(
        sys.intern(pod.metadata.namespace), sys.intern(labels.job_set), sys.intern(labels.replicated_job)
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
