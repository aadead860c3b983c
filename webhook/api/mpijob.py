"""MPIJobs of `kubeflow.org/v2beta1`, and the operator's defaults.

Upstream: mpi-operator `pkg/apis/kubeflow/v2beta1/{types,default}.go`.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

import msgspec

from webhook.api import mpirun, untyped
from webhook.api.metadata import OwnerReference
from webhook.api.mpirun import Invocation
from webhook.api.pod import PodTemplate
from webhook.api.shape import decode_error

CLEAN_POD_POLICIES = ("All", "None", "Running")


IMPLEMENTATIONS = ("OpenMPI", "Intel", "MPICH")


GROUP = "kubeflow.org"
API_VERSION = "kubeflow.org/v2beta1"
# API versions of earlier operators; the first is training-operator's.
OLDER_VERSIONS = ("kubeflow.org/v1", "kubeflow.org/v1alpha2", "kubeflow.org/v1alpha1")
# Values of `managedBy`; mpi-operator is the default (`types.go`, `KubeflowJobController` and `MultiKueueController`).
MPI_OPERATOR = "kubeflow.org/mpi-operator"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
# The operator passes this annotation and `schedulingPolicy.queue` on to Volcano
# (https://github.com/kubeflow/mpi-operator/blob/v0.8.0/pkg/controller/podgroup.go).
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
AT_STARTUP = "AtStartup"
WAIT_FOR_WORKERS = "WaitForWorkersReady"
LAUNCHER = "Launcher"
WORKER = "Worker"

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ObjectMeta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    written_uid: str | None = msgspec.field(default=None, name="uid")
    """A user may write null. With server-side apply, the mutating hook gets the null, because the uid is set later."""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def uid(self) -> str:
        """Empty before the object is stored."""
        return self.written_uid or ""


class SchedulingPolicy(msgspec.Struct, rename="camel", gc=False):
    min_available: Int32 | None = None
    queue: str | None = None
    priority_class: str | None = None
    min_resources: dict[str, object] | None = None
    schedule_timeout_seconds: Int32 | None = None


class RunPolicy(msgspec.Struct, rename="camel", gc=False):
    """When the job ends and which pods remain afterwards. Times are in seconds."""

    clean_pod_policy: str | None = None
    ttl_seconds_after_finished: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    backoff_limit: Int32 | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    scheduling_policy: SchedulingPolicy | None = None


class ReplicaSpec(msgspec.Struct, rename="camel", gc=False):
    replicas: Int32 | None = None
    restart_policy: str | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class MPIJobSpec(msgspec.Struct, rename="camel", gc=False):
    """`mpi_replica_specs` contains every key that the user wrote, even an unknown role."""

    mpi_replica_specs: Mapping[str, ReplicaSpec | None] | None = None
    slots_per_worker: Int32 | None = None
    run_launcher_as_worker: bool | None = None
    run_policy: RunPolicy | None = None
    ssh_auth_mount_path: str | None = None
    launcher_creation_policy: str | None = None
    mpi_implementation: str | None = None


class JobCondition(msgspec.Struct, gc=False, omit_defaults=True):
    type: str = ""
    status: str = ""


class JobStatus(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """The operator's status; empty if the operator rejects the job."""

    conditions: list[JobCondition | None] | None = None
    completion_time: str | None = None

    def has(self, *types: str) -> bool:
        conditions = filter(None, self.conditions or ())
        return any(condition.type in types and condition.status == "True" for condition in conditions)

    @property
    def ended(self) -> bool:
        """Whether the operator has recorded the end of the job.

        Only `completionTime` shows the end. A job with an evicted worker is Failed too, but it continues (`isFinished`
        in mpi-operator `pkg/controller/mpi_job_controller_status.go`).
        """
        return bool(self.completion_time) and self.has("Succeeded", "Failed")


class MPIJob(msgspec.Struct, rename="camel", dict=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: MPIJobSpec = msgspec.field(default_factory=MPIJobSpec)
    raw_status: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw, name="status")

    def __post_init__(self) -> None:
        self.labels: dict[str, str] = self.metadata.labels or {}
        self.annotations: dict[str, str] = self.metadata.annotations or {}
        """The pods do not get these annotations."""
        self.run_policy = self.spec.run_policy or RunPolicy()
        specs = self.spec.mpi_replica_specs or {}
        self.launcher: ReplicaSpec | None = specs.get(LAUNCHER)
        self.worker: ReplicaSpec | None = specs.get(WORKER)
        roles = ((LAUNCHER, self.launcher), (WORKER, self.worker))
        self.replicas = [(role, replica_path(role), replica) for role, replica in roles if replica is not None]
        """(role, path, spec), the Launcher first. A missing role is left out."""

    @property
    def status(self) -> JobStatus:
        """The operator's status. Users can write the field too, so an invalid status counts as empty."""
        try:
            return _status_decoder.decode(self.raw_status) or JobStatus() if self.raw_status else JobStatus()
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return JobStatus()

    @property
    def managed_here(self) -> bool:
        return is_managed_here(self.run_policy.managed_by)

    @property
    def workers(self) -> int:
        """0 without a Worker or without `replicas`."""
        count = worker.replicas if (worker := self.worker) else 0
        return count if count and count > 0 else 0

    @property
    def owned(self) -> bool:
        """Whether an owner reference names a controller of the job."""
        return any(owner.controller for owner in self.metadata.owner_references or ())

    @property
    def suspended(self) -> bool:
        return bool(self.run_policy.suspend)

    @cached_property
    def mpirun_calls(self) -> tuple[Invocation, ...]:
        """The launcher's calls of mpirun and similar programs, see `mpirun.find`."""
        if self.launcher is None or not self.launcher.template.containers:
            return ()
        container = self.launcher.template.containers[0]
        return tuple(
            mpirun.find(
                container.command,
                container.args,
                self.mpi_implementation,
                container.env or (),
                env_from=bool(container.env_from),
            )
        )

    @property
    def mpi_implementation(self) -> str:
        return self.spec.mpi_implementation or "OpenMPI"

    @property
    def active_here(self) -> bool:
        return self.managed_here and not self.suspended

    def misnamed(self, role: str) -> str | None:
        """The key that the user probably meant for `role`; None if the job has the role, or has no similar key."""
        specs = self.spec.mpi_replica_specs or {}
        if role in specs:
            return None
        return next((key for key in specs if meant_role(key) == role), None)

    def computing(self) -> list[tuple[str, str, ReplicaSpec]]:
        """The replicas whose pods run ranks: the Worker, and with `runLauncherAsWorker` the Launcher."""
        with_launcher = self.spec.run_launcher_as_worker
        return [replica for replica in self.replicas if with_launcher or replica[0] == WORKER]


def is_managed_here(managed_by: str | None) -> bool:
    return managed_by is None or managed_by == MPI_OPERATOR


def meant_role(key: str) -> str | None:
    """The role that a key of `mpiReplicaSpecs` resembles: `Worker` for `workers`. None if it resembles no role."""
    meant = key.lower().rstrip("s").replace("master", "launcher")
    return next((role for role in (LAUNCHER, WORKER) if meant == role.lower()), None)


def replica_path(role: str) -> str:
    return f"spec.mpiReplicaSpecs[{role}]"


_decoder = msgspec.json.Decoder(MPIJob, float_hook=untyped.number)
_status_decoder = msgspec.json.Decoder(JobStatus | None)


def decode(data: bytes | msgspec.Raw) -> MPIJob:
    """The job in JSON `data`; ShapeError with the path of the first field that has a wrong type."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise decode_error(error, map_key=lambda: _bad_replica(data)) from None


def _bad_replica(data: bytes | msgspec.Raw) -> str:
    """The key of the first invalid entry in `mpiReplicaSpecs`. msgspec's error does not contain the key."""
    try:
        replicas = untyped.decode(data)["spec"]["mpiReplicaSpecs"]
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError):
        return "..."
    for role, spec in replicas.items() if isinstance(replicas, dict) else ():
        try:
            msgspec.convert(spec, ReplicaSpec | None)
        except msgspec.ValidationError:
            return str(role)
    return "..."


def apply_operator_defaults(job: MPIJob) -> MPIJob:
    """Sets the operator's defaults in `job` and returns `job`. The operator does not store its defaults (`default.go`).

    A Worker without `replicas` gets 0, which is invalid, although the field's documentation promises 1.
    """
    spec = job.spec
    spec.run_policy = job.run_policy
    if spec.run_policy.clean_pod_policy is None:
        spec.run_policy.clean_pod_policy = "None"
    if spec.slots_per_worker is None:
        spec.slots_per_worker = 1
    spec.ssh_auth_mount_path = spec.ssh_auth_mount_path or "/root/.ssh"
    spec.mpi_implementation = spec.mpi_implementation or "OpenMPI"
    spec.launcher_creation_policy = spec.launcher_creation_policy or AT_STARTUP
    for role, replicas, restart_policy in ((LAUNCHER, 1, "OnFailure"), (WORKER, 0, "Never")):
        replica = (spec.mpi_replica_specs or {}).get(role)
        if replica is not None:
            replica.replicas = replicas if replica.replicas is None else replica.replicas
            replica.restart_policy = replica.restart_policy or restart_policy
    return job
