"""MPIJobs of kubeflow.org/v1alpha2, for mpi-operator 0.2 and 0.3.

Source: https://github.com/kubeflow/mpi-operator/tree/v0.3.0/pkg (`apis/kubeflow/v1alpha2`,
`controllers/v1alpha2`).
"""

from typing import Any, Final

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.converters.fields import drop_unknown, keep, take
from webhook.converters.report import Report
from webhook.parts.older_versions import replica_specs, run_policy
from webhook.parts.older_versions.replica_specs import NEVER, ON_FAILURE, Options

_IMPLEMENTATIONS: Final = {"OpenMPI": "OpenMPI", "IntelMPI": "Intel", "MPICH": "MPICH"}


def convert(written: dict[str, Any], options: Options, report: Report) -> dict[str, Any]:
    spec = dict(written)
    new: dict[str, Any] = {}
    keep(spec, new, "slotsPerWorker", *replica_specs.NEW_FIELDS)
    policy = run_policy.read(spec, report)
    for key in ("backoffLimit", "activeDeadlineSeconds"):
        run_policy.move(spec, policy, key, report)
    # The old operator ignored spec.runPolicy.cleanPodPolicy.
    run_policy.move(spec, policy, "cleanPodPolicy", report, outer_wins=True)
    run_policy.report_ignored(policy, ("ttlSecondsAfterFinished", "suspend"), report)
    distribution = take(spec, "mpiDistribution", str, "spec")
    if distribution:
        new["mpiImplementation"] = _IMPLEMENTATIONS.get(distribution, distribution)
        report.mapped("spec.mpiDistribution", "is spec.mpiImplementation now")
    if policy:
        new["runPolicy"] = policy
    roles = replica_specs.convert(spec, ON_FAILURE, report)
    _restarts(roles, report)
    if where := replica_specs.launcher_gpus(roles.get(LAUNCHER, {}), options, report):
        report.to_do(where, "requests GPUs, which the launcher does not use: remove them, or set runLauncherAsWorker")
    new["mpiReplicaSpecs"] = roles
    drop_unknown(spec, "spec", report)
    return new


def _restarts(roles: dict[str, Any], report: Report) -> None:
    """The old operator ran workers in a StatefulSet, which always restarts them."""
    if roles.get(WORKER, {}).get("restartPolicy") == NEVER:
        field = f"{replica_specs.path(WORKER)}.restartPolicy"
        report.changed(field, "the old operator ignored this value and restarted workers; Never has an effect now")
