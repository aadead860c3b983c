"""MPIJobs of kubeflow.org/v1, for mpi-operator 0.2.3 and 0.3 or for training-operator 1.x.

The two operators behave differently, and a job does not show which operator ran it. Sources:
https://github.com/kubeflow/mpi-operator/tree/v0.3.0/pkg (`apis/kubeflow/v1`, `controllers/v1`) and
https://github.com/kubeflow/training-operator/tree/v1.9.3/pkg (`apis/kubeflow.org/v1`, `controller.v1/mpi`).
"""

from typing import Any

from webhook.api.mpijob import LAUNCHER
from webhook.converters.fields import drop_unknown, keep
from webhook.converters.report import Report
from webhook.parts.older_versions import replica_specs, run_policy
from webhook.parts.older_versions.replica_specs import NEVER, Options


def convert(written: dict[str, Any], options: Options, report: Report) -> dict[str, Any]:
    spec = dict(written)
    new: dict[str, Any] = {}
    keep(spec, new, "slotsPerWorker", *replica_specs.NEW_FIELDS)
    policy = run_policy.read(spec, report)
    run_policy.move(spec, policy, "cleanPodPolicy", report)
    # mpi-operator ignored these fields; training-operator used them.
    run_policy.report_ignored(
        policy, ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"), report, of="the MPI operator"
    )
    if policy:
        new["runPolicy"] = policy
    roles = replica_specs.convert(spec, NEVER, report)
    launcher = roles.get(LAUNCHER, {})
    if launcher.get("restartPolicy") == NEVER and policy.get("backoffLimit") is None:
        report.changed(
            f"{run_policy.PATH}.backoffLimit",
            "is not set: a failed launcher ended the job, and is now retried up to 6 times. Set 0 for no retries",
        )
    if not new.get("mpiImplementation"):
        report.changed(
            "spec.mpiImplementation",
            "is not set, which means OpenMPI: set Intel or MPICH if the image has that MPI. The training operator"
            " configured launchers for both Open MPI and Intel MPI",
        )
    if where := replica_specs.launcher_gpus(launcher, options, report):
        new.setdefault("runLauncherAsWorker", True)
        report.changed(
            where,
            "requests GPUs, so spec.runLauncherAsWorker is set: training-operator ran ranks on such a launcher. The MPI"
            " operator's v1 did not: if the MPI operator ran the job, convert with --keep-launcher-small",
        )
    new["mpiReplicaSpecs"] = roles
    drop_unknown(spec, "spec", report)
    return new
