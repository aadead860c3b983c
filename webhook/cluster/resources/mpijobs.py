"""Stored MPIJobs, with the requests of their pods."""

import sys
from collections.abc import Hashable
from weakref import WeakKeyDictionary, ref

import msgspec

from webhook.api import mpijob
from webhook.api.annotations import NETWORK_POLICY
from webhook.api.kueue import QUEUE_NAME
from webhook.api.operator_checks import is_rejected
from webhook.api.pod import PodAffinity, PodResourceClaim, PodTemplate
from webhook.api.quota_charges import PodShape, pod_shape
from webhook.cluster.resource import Metadata, Wire, namespaced


class _Labels(msgspec.Struct, omit_defaults=True):
    queue: str = msgspec.field(default="", name=QUEUE_NAME)


class _Annotations(msgspec.Struct, omit_defaults=True):
    network_policy: str = msgspec.field(default="", name=NETWORK_POLICY)


class _Metadata(Metadata):
    uid: str = ""
    generation: int = 0
    labels: _Labels | None = None
    annotations: _Annotations | None = None
    deletion_timestamp: str | None = None


class _Requirements(msgspec.Struct, omit_defaults=True):
    requests: dict[str, object] | None = None
    limits: dict[str, object] | None = None


class _Container(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    resources: _Requirements | None = None
    restart_policy: str | None = None


class _ClaimMeta(msgspec.Struct, omit_defaults=True):
    annotations: dict[str, str] | None = None


class _ClaimSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    resources: _Requirements | None = None


class _Claim(msgspec.Struct, omit_defaults=True):
    metadata: _ClaimMeta | None = None
    spec: _ClaimSpec | None = None


class _Ephemeral(msgspec.Struct, rename="camel", omit_defaults=True):
    volume_claim_template: _Claim | None = None


class _Volume(msgspec.Struct, omit_defaults=True):
    ephemeral: _Ephemeral | None = None


class _Affinity(msgspec.Struct, rename="camel", omit_defaults=True):
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class _PodSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    overhead: dict[str, object] | None = None
    resources: _Requirements | None = None
    volumes: list[_Volume] | None = None
    priority_class_name: str | None = None
    runtime_class_name: str | None = None
    active_deadline_seconds: int | None = None
    affinity: _Affinity | None = None
    resource_claims: list[PodResourceClaim | None] | None = None


class _Template(msgspec.Struct, omit_defaults=True):
    spec: _PodSpec | None = None


class _Replica(msgspec.Struct, rename="camel", omit_defaults=True):
    replicas: int | None = None
    restart_policy: str | None = None
    template: _Template | None = None


class _RunPolicy(msgspec.Struct, rename="camel", omit_defaults=True):
    suspend: bool | None = None
    managed_by: str | None = None
    clean_pod_policy: str | None = None
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    mpi_replica_specs: dict[str, _Replica | None] | None = None
    run_policy: _RunPolicy | None = None
    slots_per_worker: int | None = None
    mpi_implementation: str | None = None


class _MPIJob(Wire):
    metadata: _Metadata
    spec: _Spec | None = None
    status: mpijob.JobStatus | None = None


# Jobs with equal pods share a shape. Weak references free a shape with its last job.
_SHARED: WeakKeyDictionary[PodShape, ref[PodShape]] = WeakKeyDictionary()


def _shared(shape: PodShape) -> PodShape:
    shared = _SHARED.get(shape)
    cached = shared() if shared is not None else None
    if cached is None:
        _SHARED[shape] = ref(shape)
    return cached or shape


class PodsRecord(msgspec.Struct, frozen=True, gc=False):
    """The pods of one role of a job."""

    role: str
    count: int
    shape: PodShape


class MPIJobRecord(msgspec.Struct, frozen=True, gc=False):
    """An existing MPIJob."""

    namespace: str
    name: str
    uid: str
    over: bool = False
    """The job has ended or is being deleted. Its `pods` are empty."""
    suspended: bool = False
    queue: str = ""
    """Kueue's queue; empty for none."""
    pods: tuple[PodsRecord, ...] = ()
    """Also empty if the operator of this cluster rejects the job or does not manage it."""
    ended_at: str = ""
    """The time when this cluster's operator recorded the job's end (RFC 3339, UTC); empty for other jobs."""
    generation: int = 0
    """A number that changes with every change of the spec."""
    network_policy: str = ""
    """The value of the annotation `training.openshift.io/network-policy`."""


def _record(decoded: _MPIJob) -> MPIJobRecord:
    metadata, spec = decoded.metadata, decoded.spec or _Spec()
    policy = spec.run_policy or _RunPolicy()
    ended_at = (decoded.status.completion_time or "") if decoded.status is not None and decoded.status.ended else ""
    over = bool(ended_at) or metadata.deletion_timestamp is not None
    return MPIJobRecord(
        namespace=sys.intern(metadata.namespace),
        name=sys.intern(metadata.name),
        uid=sys.intern(metadata.uid),
        over=over,
        ended_at=ended_at if mpijob.is_managed_here(policy.managed_by) else "",
        suspended=bool(policy.suspend),
        generation=metadata.generation,
        network_policy=sys.intern(metadata.annotations.network_policy) if metadata.annotations else "",
        queue=sys.intern(metadata.labels.queue) if metadata.labels else "",
        pods=() if over or not mpijob.is_managed_here(policy.managed_by) or _refused(decoded) else tuple(_pods(spec)),
    )


def _refused(decoded: _MPIJob) -> bool:
    """Whether the operator rejects the job and therefore creates no pods."""
    if decoded.status is not None and decoded.status.conditions:
        return False  # the operator has accepted the job earlier
    fields = {"metadata": {"name": decoded.metadata.name}, "spec": msgspec.to_builtins(decoded.spec or _Spec())}
    return is_rejected(mpijob.apply_operator_defaults(msgspec.convert(fields, mpijob.MPIJob)))


def _pods(spec: _Spec) -> list[PodsRecord]:
    pods = []
    for role in (mpijob.LAUNCHER, mpijob.WORKER):
        replica = (spec.mpi_replica_specs or {}).get(role)
        if replica is not None:
            template = msgspec.convert(msgspec.to_builtins(replica.template or _Template()), PodTemplate)
            count = 1 if role == mpijob.LAUNCHER else replica.replicas or 0
            pods.append(PodsRecord(role, count, _shared(pod_shape(template))))
    return pods


def _group(job: MPIJobRecord) -> Hashable:
    # Reviews read the jobs of a namespace. Ended jobs have a separate group, because they would make reviews slower.
    return None if job.over else job.namespace


MPI_JOBS = namespaced("mpijobs", "MPIJob", mpijob.API_VERSION, wire=_MPIJob, record=_record, group=_group)
