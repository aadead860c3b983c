"""The pod of each role as the operator creates it. The caller submits the pods to an API server in a dry run.

https://github.com/kubeflow/mpi-operator/blob/v0.8.0/pkg/controller/mpi_job_controller.go (`newWorker`,
`newLauncherPodTemplate`, `setupSSHOnPod`)
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from webhook.api import mpijob, mpirun, operator_env
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, ReplicaSpec
from webhook.api.untyped import at, mapping

_LABELS: Final = "training.kubeflow.org/"
_ROOTS_KEYS: Final = "/root/.ssh"
_PUBLIC: Final = "ssh-publickey"
_KEYS: Final = (("ssh-privatekey", "id_rsa"), (_PUBLIC, "id_rsa.pub"), (_PUBLIC, "authorized_keys"))
_SCRIPTS: Final = (("hostfile", 0o444), ("discover_hosts.sh", 0o555))


def of_job(document: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """The pods of a job by role, as JSON; empty for jobs of other controllers. Raises ShapeError for an invalid job.

    `document` is the job as the API server would store it.
    """
    job = mpijob.apply_operator_defaults(mpijob.decode(msgspec.json.encode(document)))
    if not job.managed_here:
        return {}
    return {role: _pod(role, replica, job, document, name) for role, _, replica in job.replicas if replica.replicas}


def _pod(role: str, replica: ReplicaSpec, job: MPIJob, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    namespace = at(document, "metadata").get("namespace") or ""
    template = at(document, "spec", "mpiReplicaSpecs", role, "template")
    host = f"{name}-launcher" if role == LAUNCHER else f"{name}-worker-0"
    labels = {"operator-name": "mpi-operator", "job-name": name, "job-role": role.lower()}
    if role == WORKER or job.spec.run_launcher_as_worker:
        labels["replica-index"] = str(int(role == WORKER and bool(job.spec.run_launcher_as_worker)))
    spec: dict[str, Any] = {
        **at(template, "spec"),
        "hostname": host,
        "subdomain": name,
        "restartPolicy": "Never" if replica.restart_policy == "ExitCode" else replica.restart_policy,
    }
    if spec.get("hostNetwork"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    own = {key: at(template, "metadata").get(key) or {} for key in ("labels", "annotations")}
    own["labels"] = {**own["labels"], **{f"{_LABELS}{key}": value for key, value in labels.items()}}
    _connect(spec, role, job, name)
    if role == WORKER:
        config = mapping(spec.get("dnsConfig"))
        searches = [*(config.get("searches") or ()), f"{name}.{namespace}.svc.cluster.local"]
        spec["dnsConfig"] = {**config, "searches": searches}
    metadata = {"name": host, "namespace": namespace, **own}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _connect(spec: dict[str, Any], role: str, job: MPIJob, name: str) -> None:
    folder = job.spec.ssh_auth_mount_path
    keys: dict[str, Any] = {"secretName": f"{name}-ssh", "items": [{"key": key, "path": path} for key, path in _KEYS]}
    if folder == _ROOTS_KEYS:
        keys["defaultMode"] = 0o600
    volumes, mounts = [{"name": "ssh-auth", "secret": keys}], [{"name": "ssh-auth", "mountPath": folder}]
    if role == LAUNCHER:
        scripts = [{"key": key, "path": key, "mode": mode} for key, mode in _SCRIPTS]
        volumes.append({"name": "mpi-job-config", "configMap": {"name": f"{name}-config", "items": scripts}})
        mounts.append({"name": "mpi-job-config", "mountPath": mpirun.CONFIG_FOLDER})
    variables = [{"name": key, "value": values[0]} for key, values in operator_env.values(role, job).items()]
    if role == LAUNCHER and not job.spec.run_launcher_as_worker:
        variables.append({"name": "NVIDIA_DRIVER_CAPABILITIES", "value": ""})
    first, *others = spec["containers"]
    first = {
        **first,
        "env": [*(first.get("env") or ()), *variables],
        "volumeMounts": [*(first.get("volumeMounts") or ()), *mounts],
    }
    if role == WORKER and not first.get("command") and not first.get("args"):
        first["command"] = ["/usr/sbin/sshd", "-De"]
    spec["containers"] = [first, *others]
    spec["volumes"] = [*(spec.get("volumes") or ()), *volumes]
