"""Whether the operator rejects a job. For a rejected job, the operator creates no pods until a user changes the job.

The operator runs https://github.com/kubeflow/mpi-operator/blob/v0.8.0/pkg/apis/kubeflow/validation/validation.go on
every sync before it creates objects. A job that fails this validation gets no status.
"""

from typing import Final

from webhook.api import names
from webhook.api.mpijob import CLEAN_POD_POLICIES, IMPLEMENTATIONS, LAUNCHER, MPIJob, ReplicaSpec

RESTART_POLICIES: Final = ("Never", "OnFailure")


def always_rejected(job: MPIJob) -> bool:
    """Whether the operator has rejected the job on every sync. The job must have the operator's defaults."""
    return not job.status.conditions and is_rejected(job)


def is_rejected(job: MPIJob) -> bool:
    """Whether the operator rejects the job on the next sync. The job must have the operator's defaults."""
    spec, policy = job.spec, job.run_policy
    last_worker = f"{job.metadata.name}-worker-{max(job.workers, 1) - 1}"
    counts = (policy.ttl_seconds_after_finished, policy.active_deadline_seconds, policy.backoff_limit)
    return (
        names.dns_1035_label_problem(last_worker) is not None
        or job.launcher is None
        or any(_bad(role, replica) for role, _, replica in job.replicas)
        or spec.slots_per_worker is None
        or min(spec.slots_per_worker, *(count for count in counts if count is not None), 0) < 0
        or policy.clean_pod_policy not in CLEAN_POD_POLICIES
        or spec.mpi_implementation not in IMPLEMENTATIONS
    )


def _bad(role: str, replica: ReplicaSpec) -> bool:
    count = replica.replicas or 0
    wrong = count != 1 if role == LAUNCHER else count < 1
    return wrong or replica.restart_policy not in RESTART_POLICIES or not replica.template.containers
