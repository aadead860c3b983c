"""The operator's defaults in the JSON of a job, for the variable `object`: those that `webhook.api.mpijob` fills in."""

from typing import Any

from webhook.api.mpijob import LAUNCHER, WORKER


def with_defaults(job: dict[str, Any]) -> dict[str, Any]:
    """`job`, whose fields have the right types, with what the operator assumes; changes and returns it."""
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return job
    run_policy = spec.get("runPolicy")
    spec["runPolicy"] = run_policy = {} if run_policy is None else run_policy
    _fill(run_policy, "cleanPodPolicy", "None")
    _fill(spec, "slotsPerWorker", 1)
    for name, value in (
        ("sshAuthMountPath", "/root/.ssh"),
        ("mpiImplementation", "OpenMPI"),
        ("launcherCreationPolicy", "AtStartup"),
    ):
        spec[name] = spec.get(name) or value
    for role, replicas, restart_policy in ((LAUNCHER, 1, "OnFailure"), (WORKER, 0, "Never")):
        replica = (spec.get("mpiReplicaSpecs") or {}).get(role)
        if replica is not None:
            _fill(replica, "replicas", replicas)
            replica["restartPolicy"] = replica.get("restartPolicy") or restart_policy
    return job


def _fill(values: dict[str, Any], name: str, value: Any) -> None:
    if values.get(name) is None:
        values[name] = value
