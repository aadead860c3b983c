"""Converts an MPIJob to a TrainJob and a TrainingRuntime of Kubeflow Trainer 2.3.

The runtime has the pod templates, because a TrainJob can set only a few of their fields. The templates get the fields
that mpi-operator adds to pods, but that Trainer does not add. Sources: `newWorker` and `newLauncherPodTemplate` in
mpi-operator's `pkg/controller/mpi_job_controller.go`, and Trainer's `pkg/runtime/framework/plugins/mpi/mpi.go`.
"""

from posixpath import normpath
from typing import Any, Final

from webhook.api import annotations, sshd
from webhook.api.mpijob import API_VERSION, LAUNCHER, MULTIKUEUE, WAIT_FOR_WORKERS, WORKER, replica_path
from webhook.api.untyped import at, mapping, mappings
from webhook.converters import stored_jobs
from webhook.converters.fields import containers, copied, drop_unknown, maps, nested, take, texts
from webhook.converters.report import ConversionError, Converted, Report
from webhook.parts.trainer import kinds

_NAMES: Final = {LAUNCHER: kinds.LAUNCHER, WORKER: kinds.NODE}
# mpi-operator's defaults.
_RESTARTS: Final = {LAUNCHER: "OnFailure", WORKER: "Never"}
_RUN_POLICY: Final = "spec.runPolicy"
_SSHD: Final = ("/usr/sbin/sshd", "-De")
# Trainer's maximum length of `spec.trainer.command` and `args`.
_MAX_WORDS: Final = 128

_ROLE_VARIABLE: Final = "K_MPI_JOB_ROLE"
_NO_GPUS: Final = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")

_OF_ROOT: Final = "/root/.ssh"
_KEYS: Final = "mpi-ssh-keys"
_KEYS_FOLDER: Final = "/etc/mpi-ssh-auth"
_SAME: Final = ("image", "imagePullPolicy", "resources", "securityContext")

# The names of mpi-operator's volumes, and the names of Trainer's volumes with the same files.
_VOLUMES: Final = {"ssh-auth": kinds.KEY_VOLUME, "mpi-job-config": kinds.HOSTFILE_VOLUME}

_LABELS: Final = "training.kubeflow.org/"
_OPERATOR, _JOB, _ROLE = (f"{_LABELS}{name}" for name in ("operator-name", "job-name", "job-role"))
_KEYS_OF_LABELS: Final = {**dict.fromkeys((_OPERATOR, _JOB), kinds.JOB_SET_NAME), _ROLE: kinds.REPLICATED_JOB_NAME}
_KEY_LISTS: Final = ("matchLabelKeys", "mismatchLabelKeys")
_EXISTS: Final = {"In": "Exists", "NotIn": "DoesNotExist"}


def convert(document: dict[str, Any]) -> tuple[Converted, dict[str, Any]]:
    """The TrainJob and its runtime; ConversionError if the job cannot be converted. `document` is not changed."""
    old, report = copied(document), Report()
    if take(old, "apiVersion", str, "MPIJob") != API_VERSION:
        raise ConversionError("apiVersion", f"is not {API_VERSION}: convert the job to {API_VERSION} first")
    spec = take(old, "spec", dict, "MPIJob")
    if spec is None:
        raise ConversionError("spec", "is not set")
    written = take(old, "metadata", dict, "MPIJob") or {}
    name = str(written.get("name") or written.get("generateName") or "").rstrip("-")
    if not name:
        raise ConversionError("metadata.name", "is not set")
    del old["kind"]
    report.mapped("kind", f"is a TrainJob now, with TrainingRuntime {name[:100]} for its pods")
    head = {key: written[key] for key in ("namespace",) if key in written}
    metadata = _metadata(written, report)
    job, runtime = _specs(spec, name, report)
    stored_jobs.report_status(old.pop("status", None), report)
    drop_unknown(old, "MPIJob", report)
    report.to_do("apply", f"TrainingRuntime {name[:100]} first: Trainer rejects the TrainJob without it")
    version = {"apiVersion": kinds.API_VERSION}
    return (
        Converted({**version, "kind": kinds.TRAIN_JOB, "metadata": metadata, "spec": job}, report),
        {**version, "kind": kinds.RUNTIME, "metadata": {"name": name, **head}, "spec": runtime},
    )


def _metadata(written: dict[str, Any], report: Report) -> dict[str, Any]:
    stored = "uid" in written
    metadata = stored_jobs.metadata(written, report)
    remaining = at(metadata, "annotations")
    for key in annotations.OF_USERS:
        if key in remaining and key != annotations.MIGRATED_FROM:
            effects = "its effects are in the job" if stored else "set its effects by hand"
            report.lost(f"metadata.annotations[{key}]", f"is for MPIJobs: {effects}")
            del remaining[key]
    if not remaining:
        metadata.pop("annotations", None)
    if not stored:
        report.to_do(
            "injections",
            "nothing is injected into TrainJobs: to keep the injections for MPIJobs, convert the job from the cluster"
            " (kubectl get mpijob NAME -o yaml)",
        )
    return metadata


def _specs(spec: dict[str, Any], name: str, report: Report) -> tuple[dict[str, Any], dict[str, Any]]:
    if (implementation := take(spec, "mpiImplementation", str, "spec")) not in {None, "OpenMPI"}:
        raise ConversionError("spec.mpiImplementation", f"{str(implementation)[:100]}: Trainer supports only OpenMPI")
    roles = take(spec, "mpiReplicaSpecs", dict, "spec") or {}
    as_node = spec.pop("runLauncherAsWorker", None) is True
    workers = _workers(roles, report)
    slots = take(spec, "slotsPerWorker", int, "spec") or 1
    report.mapped("spec.slotsPerWorker", "is spec.trainer.numProcPerNode")
    jobs = {role: _replicated_job(role, roles, as_node=as_node, report=report) for role in (WORKER, LAUNCHER)}
    pods = {role: job["template"]["spec"]["template"]["spec"] for role, job in jobs.items()}
    mount_path = _ssh_keys(pods, take(spec, "sshAuthMountPath", str, "spec") or _OF_ROOT, report)
    waits = _remove_wait_container(pods[LAUNCHER], report)
    if take(spec, "launcherCreationPolicy", str, "spec") == WAIT_FOR_WORKERS:
        report.mapped("spec.launcherCreationPolicy", "is dependsOn of the launcher")
        waits = True
    if waits:
        jobs[LAUNCHER]["dependsOn"] = [{"name": kinds.NODE, "status": "Ready"}]
    job_set: dict[str, Any] = {
        "network": {"publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [kinds.LAUNCHER]},
        "replicatedJobs": list(jobs.values()),
    }
    policy = {
        "numProcPerNode": slots,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": mount_path,
        "runLauncherAsNode": as_node,
    }
    if as_node:
        report.mapped("spec.runLauncherAsWorker", "is runLauncherAsNode: the launcher is one of numNodes")
    job = {
        "runtimeRef": {"apiGroup": kinds.GROUP, "kind": kinds.RUNTIME, "name": name},
        "trainer": {"numNodes": workers + as_node, "numProcPerNode": slots, **_program(pods[LAUNCHER], report)},
        **_run_policy(spec, jobs[LAUNCHER]["template"]["spec"], job_set, report),
    }
    drop_unknown(spec, "spec", report)
    first = f"{name[:100]}-{kinds.NODE if not as_node else kinds.LAUNCHER}-0-0.{name[:100]}"
    report.changed("hostfile", f"hosts have different names, such as {first}, and there is no discover_hosts.sh")
    report.changed("pods", "a failed worker is created again, up to 6 times")
    return job, {"mlPolicy": {"numNodes": 1, "mpi": policy}, "template": {"spec": job_set}}


def _remove_wait_container(launcher: dict[str, Any], report: Report) -> bool:
    """Removes the injected init container that waits for workers. Returns whether it existed."""
    before = maps(launcher, "initContainers")
    after = [container for container in before if container.get("name") != sshd.WAIT_CONTAINER]
    if after == before:
        return False
    launcher["initContainers"] = after
    report.changed(
        f"{replica_path(LAUNCHER)}.template.spec.initContainers", f"dependsOn replaces {sshd.WAIT_CONTAINER}"
    )
    return True


def _workers(roles: dict[str, Any], report: Report) -> int:
    for role in (LAUNCHER, WORKER):
        if not isinstance(roles.get(role), dict):
            raise ConversionError(replica_path(role), "is not set: Trainer's MPI requires a launcher and nodes")
    workers = take(roles[WORKER], "replicas", int, replica_path(WORKER)) or 0
    if workers < 1:
        raise ConversionError(
            f"{replica_path(WORKER)}.replicas", "is 0: Trainer's MPI requires a node in addition to the launcher"
        )
    report.mapped(f"{replica_path(WORKER)}.replicas", "is spec.trainer.numNodes")
    return workers


def _replicated_job(role: str, roles: dict[str, Any], *, as_node: bool, report: Report) -> dict[str, Any]:
    replica, where = roles[role], replica_path(role)
    replica.pop("replicas", None)
    restarts = take(replica, "restartPolicy", str, where) or _RESTARTS[role]
    template = take(replica, "template", dict, where) or {}
    drop_unknown(replica, where, report)
    main, *sidecars = containers(template, f"{where}.template")
    pod, place = template["spec"], f"{where}.template.spec"
    if any(container.get("name") == kinds.NODE for container in [*sidecars, *maps(pod, "initContainers")]):
        raise ConversionError(f"{place}.containers", f"a second container is named {kinds.NODE}: rename it")
    main["name"] = kinds.NODE
    report.mapped(f"{place}.containers[0]", f"is named {kinds.NODE}: Trainer finds it by this name")
    if role == WORKER and not main.get("command") and not main.get("args"):
        main["command"] = [*_SSHD]
        report.mapped(
            f"{place}.containers[0].command", f"{' '.join(_SSHD)} is written out: Trainer does not start sshd"
        )
    added = {_ROLE_VARIABLE: role.lower(), **(dict.fromkeys(_NO_GPUS, "") if role == LAUNCHER and not as_node else {})}
    main["env"] = [variable for variable in mappings(main.get("env")) if variable.get("name") not in added]
    main["env"] += [{"name": key, "value": value} for key, value in added.items()]
    for container in [main, *sidecars, *maps(pod, "initContainers")]:
        for mount in maps(container, "volumeMounts"):
            mount["name"] = _VOLUMES.get(str(mount.get("name")), mount.get("name"))
    for key in ("hostname", "subdomain"):
        pod.pop(key, None)
    if pod.get("hostNetwork") is True:
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"
    pod["restartPolicy"] = restarts
    for part in ("affinity", "topologySpreadConstraints"):
        for selecting, field in nested(pod.get(part), f"{place}.{part}"):
            _change_labels(selecting, field, report)
    of_trainer = {"metadata": {"labels": {kinds.ANCESTOR: kinds.OF_TRAINER}}} if role == LAUNCHER else {}
    return {"name": _NAMES[role], "replicas": 1, "template": {**of_trainer, "spec": {"template": template}}}


def _change_labels(selecting: dict[str, Any], field: str, report: Report) -> None:
    """Replaces mpi-operator's labels in a selector by JobSet's labels.

    JobSet has no label with the operator's name. An expression about this name becomes the condition that JobSet's
    label exists.
    """
    before = copied(selecting)
    selector = mapping(selecting.get("labelSelector"))
    labels, expressions = at(selector, "matchLabels"), mappings(selector.get("matchExpressions"))
    for key in [key for key in labels if key in _KEYS_OF_LABELS]:
        expressions.append({"key": key, "operator": "In", "values": [labels.pop(key)]})
    for expression in expressions:
        key = str(expression.get("key"))
        if key == _OPERATOR:
            expression["operator"] = _EXISTS.get(str(expression.get("operator")), expression.get("operator"))
            expression.pop("values", None)
        elif key == _ROLE:
            expression["values"] = [kinds.NODE if value == "worker" else value for value in texts(expression, "values")]
        expression["key"] = _KEYS_OF_LABELS.get(key, key)
    if expressions:
        selector["matchExpressions"] = expressions
    for key in _KEY_LISTS:
        if key in selecting:
            selecting[key] = [*dict.fromkeys(_KEYS_OF_LABELS.get(label, label) for label in texts(selecting, key))]
    if selecting != before:
        report.mapped(field, "selects by JobSet's labels, as pods are labelled")


def _ssh_keys(pods: dict[str, dict[str, Any]], mount_path: str, report: Report) -> str:
    """Make the SSH keys usable. Returns the runtime's sshAuthMountPath.

    Root owns the keys that Trainer mounts, and a group may read them (`MPISSHPrivateKeyFileMode`). ssh as root rejects
    such keys, so root gets a copy. Other users must be in the group.
    """
    if normpath(mount_path) == _OF_ROOT:
        for pod in pods.values():
            _copy_keys(pod)
        report.changed(
            "spec.sshAuthMountPath", f"is {_KEYS_FOLDER}: {_KEYS} copies the keys to {_OF_ROOT} with mode 0600"
        )
        return _KEYS_FOLDER
    report.mapped("spec.sshAuthMountPath", "is sshAuthMountPath of the TrainingRuntime")
    for role, pod in pods.items():
        field, context = f"{replica_path(role)}.template.spec.securityContext.fsGroup", at(pod, "securityContext")
        user = at(pod["containers"][0], "securityContext").get("runAsUser", context.get("runAsUser"))
        if "fsGroup" in context or "supplementalGroups" in context or user == 0:
            continue
        if user is None:
            report.to_do(field, "Trainer mounts the key readable for a group: set fsGroup, unless the cluster sets it")
        else:
            pod["securityContext"] = {**context, "fsGroup": user}
            report.changed(field, f"is {user}, so that user {user} can read the key; volumes get this group too")
    return mount_path


def _copy_keys(pod: dict[str, Any]) -> None:
    main = pod["containers"][0]
    # With the main container's resources, the init container does not increase the pod's requests.
    copying: dict[str, Any] = {
        "name": _KEYS,
        **copied({key: main[key] for key in _SAME if key in main}),
        "command": ["/bin/sh", "-c", f"cp {_KEYS_FOLDER}/* {_OF_ROOT}/ && chmod 600 {_OF_ROOT}/*"],
        "volumeMounts": [
            {"name": kinds.KEY_VOLUME, "mountPath": _KEYS_FOLDER},
            {"name": _KEYS, "mountPath": _OF_ROOT},
        ],
    }
    pod["initContainers"] = [copying, *mappings(pod.get("initContainers"))]
    pod["volumes"] = [*mappings(pod.get("volumes")), {"name": _KEYS, "emptyDir": {"medium": "Memory"}}]
    main["volumeMounts"] = [*mappings(main.get("volumeMounts")), {"name": _KEYS, "mountPath": _OF_ROOT}]


def _program(launcher: dict[str, Any], report: Report) -> dict[str, Any]:
    main = launcher["containers"][0]
    program = {key: main[key] for key in ("command", "args") if texts(main, key)}
    if any(len(words) > _MAX_WORDS for words in program.values()):
        return {}
    for key in program:
        del main[key]
        report.mapped(f"{replica_path(LAUNCHER)}.template.spec.containers[0].{key}", f"is spec.trainer.{key}")
    return program


def _run_policy(
    spec: dict[str, Any], launcher: dict[str, Any], job_set: dict[str, Any], report: Report
) -> dict[str, Any]:
    policy = take(spec, "runPolicy", dict, "spec") or {}
    job: dict[str, Any] = {}
    for key, target, where in (
        ("suspend", job, "spec"),
        ("activeDeadlineSeconds", job, "spec"),
        ("backoffLimit", launcher, "the launcher's Job"),
        ("ttlSecondsAfterFinished", job_set, "the JobSet; the TrainJob itself stays"),
    ):
        if key in policy:
            target[key] = policy.pop(key)
            report.mapped(f"{_RUN_POLICY}.{key}", f"is now a field of {where}")
    cleaning, field = take(policy, "cleanPodPolicy", str, _RUN_POLICY), f"{_RUN_POLICY}.cleanPodPolicy"
    if cleaning in {"All", "Running"}:
        report.mapped(field, "JobSet deletes running pods when the launcher has ended")
    else:
        report.changed(field, "JobSet deletes running pods when the launcher has ended, as with Running")
    if (manager := policy.pop("managedBy", None)) == MULTIKUEUE:
        job["managedBy"] = manager
        report.mapped(f"{_RUN_POLICY}.managedBy", "is spec.managedBy")
    elif manager is not None:
        report.lost(f"{_RUN_POLICY}.managedBy", "Trainer runs the job")
    if policy.pop("schedulingPolicy", None):
        report.to_do(
            f"{_RUN_POLICY}.schedulingPolicy",
            "is lost: for a PodGroup set podGroupPolicy of the TrainingRuntime, coscheduling or volcano",
        )
    drop_unknown(policy, _RUN_POLICY, report)
    return job
