"""The operator accepts the job.

The MPI operator checks a job only after it is stored: an invalid job gets one event and no status, and is not tried
again. This rule makes the same checks earlier (mpi-operator `pkg/apis/kubeflow/validation/validation.go`), on the
object with the operator's defaults. It also rejects:

* keys of `mpiReplicaSpecs` that the operator ignores or that make it crash, and values of enums that the schema does
  not list;
* volumes, mounts and names that the operator itself uses, and mounts inside the folders that it mounts read-only (the
  SSH keys and `/etc/mpi`);
* negative quantities, for which the API server rejects every pod;
* quantities such as `1e1.5`, which no Kubernetes program can read. While such a job is stored, the operator cannot list
  any job.

The operator prepares only the first container of each pod. It is a warning if a later container has accelerators and
the first container has none. It is also a warning if a later container runs mpirun or sshd, and the command of the
first container shows that the first container does not. It is a warning too if the first container sets a variable such
as `OMPI_MCA_plm_rsh_args`, which the operator overwrites.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import normpath

from webhook import PROGRAM
from webhook.api import mca, mpirun, names, operator_env, quantity, quantity_fields, sshd
from webhook.api.accelerators import DEFAULT_ACCELERATORS, accelerators
from webhook.api.crd_schema import such_as
from webhook.api.mca import ENV_PREFIX
from webhook.api.mpijob import (
    AT_STARTUP,
    CLEAN_POD_POLICIES,
    IMPLEMENTATIONS,
    LAUNCHER,
    MPI_OPERATOR,
    MULTIKUEUE,
    WAIT_FOR_WORKERS,
    WORKER,
    MPIJob,
    ReplicaSpec,
    meant_role,
)
from webhook.api.mpirun import CONFIG_FOLDER
from webhook.api.operator_checks import RESTART_POLICIES
from webhook.api.pod import Container, PodSpec, PodTemplate
from webhook.api.quantity_fields import Written
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.sizes import Sizes, more_workers
from webhook.rules import CauseReason, Degree, Violation, rule
from webhook.rules.limits import MAX_MCA_ADVICE_CHARACTERS

CREATION_POLICIES = (AT_STARTUP, WAIT_FOR_WORKERS)
MANAGERS = (MPI_OPERATOR, MULTIKUEUE)

# Values that users write instead of the valid values.
_MEANT = {"always": "OnFailure", "no": "Never", "delete": "All", "waitforworkersrunning": WAIT_FOR_WORKERS}

# The default of `scaleTo` in the rule `name-length`.
HEAD_ROOM = 100

RESERVED_VOLUMES = {LAUNCHER: ("ssh-auth", "mpi-job-config"), WORKER: ("ssh-auth",)}
# Files of the operator, over which a volume can be mounted.
FILES = frozenset(("id_rsa", "id_rsa.pub", "authorized_keys", "hostfile", "discover_hosts.sh"))
# A path that `normpath` does not change.
_PLAIN = re.compile(r"(?>(?:/\.?[^/.][^/]*+)+)")
RESERVED_LABELS = [f"training.kubeflow.org/{key}" for key in ("operator-name", "job-name", "job-role", "replica-index")]


class Settings(RuleSettings):
    """No settings except the action: the operator's checks cannot be changed."""


@rule("upstream-contract", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    yield from _name(job)
    yield from _replica_keys(job)
    keys = job.spec.ssh_auth_mount_path
    folders = {keys: _folder(keys)} if keys else {}
    for role, path, spec in job.replicas:
        yield from _replica(role, path, spec, job, ctx)
        if spec.template.spec is not None:
            own = folders | {CONFIG_FOLDER: CONFIG_FOLDER} if role == LAUNCHER else folders
            yield from _reserved(spec.template.spec, f"{path}.template.spec", RESERVED_VOLUMES[role], own)
        yield from _overwritten(spec.template, path, spec.restart_policy)
        yield from _quantities(f"{path}.template", ctx.once(quantities, spec.template))
        yield from _first_container(spec.template.containers, f"{path}.template.spec.containers", role, job)
    yield from _spec(job, ctx, folders)
    yield from _run_policy(job)


def _name(job: MPIJob) -> Iterator[Violation]:
    base, generated = job.metadata.name, job.metadata.generate_name
    if not base and generated:
        base = generated[: names.GENERATED_BASE_MAX_LENGTH] + "x" * names.GENERATED_SUFFIX_LENGTH
    if not base:
        yield Violation("metadata.name", "is missing", such_as("metadata.name"), CauseReason.REQUIRED)
        return
    last_worker = f"{base}-worker-{max(job.workers, 1) - 1}"
    problem = names.dns_1035_label_problem(last_worker)
    if problem is None:
        return
    of_prefix = names.is_generated(job.metadata.name, generated)
    field = "generateName" if of_prefix else "name"
    # The suggested name also satisfies the default of the rule `name-length`.
    suffix = max(len(last_worker) - len(base), len(f"-worker-{HEAD_ROOM - 1}"))
    room = names.DNS_LABEL_MAX_LENGTH - suffix
    room -= names.GENERATED_SUFFIX_LENGTH if of_prefix else 0
    meant = names.corrected(generated if of_prefix else base, names.dns_1035_label_problem, room)
    yield Violation(
        f"metadata.{field}",
        f'the last worker would be called "{last_worker[:100]}", and that {problem}',
        fix=f"Write {meant or 'train'}{'-' if of_prefix else ''}, or another name of at most {room} characters.",
        degree=Degree("name", max(len(last_worker), names.DNS_LABEL_MAX_LENGTH)),
    )


def _replica_keys(job: MPIJob) -> Iterator[Violation]:
    path = "spec.mpiReplicaSpecs"
    specs = job.spec.mpi_replica_specs
    if specs is None:
        fix = f"Add it with Launcher and Worker, as `{PROGRAM} init` writes them."
        yield Violation(path, "is missing", fix, CauseReason.REQUIRED)
        return
    for key in specs:
        if key not in {LAUNCHER, WORKER}:
            meant = meant_role(key)
            free = meant is not None and meant not in specs
            fix = f"Rename it to {meant}." if free else "Remove it: there are only Launcher and Worker."
            fault = f'the operator does not know "{key[:100]}" and ignores it'
            yield Violation(f"{path}[{key[:100]}]", fault, fix, CauseReason.NOT_SUPPORTED)
    if job.launcher is None and job.misnamed(LAUNCHER) is None:
        yield Violation(f"{path}[Launcher]", "is missing", "Add it: it runs mpirun.", CauseReason.REQUIRED)


def _replica(role: str, path: str, spec: ReplicaSpec, job: MPIJob, ctx: Context) -> Iterator[Violation]:
    if role == LAUNCHER and spec.replicas != 1:
        fault, degree = f"is {spec.replicas}, there is always one launcher", Degree(path, abs((spec.replicas or 0) - 1))
        yield Violation(f"{path}.replicas", fault, "Set replicas to 1.", degree=degree)
    if role == WORKER and (spec.replicas or 0) < 1:
        fault = f"is {spec.replicas} (not set counts as 0), and the operator needs at least 1"
        yield Violation(f"{path}.replicas", fault, more_workers(job, ctx, 1))
    if spec.restart_policy not in RESTART_POLICIES:
        yield _not_one_of(f"{path}.restartPolicy", spec.restart_policy, RESTART_POLICIES)
    if not spec.template.containers:
        where = f"{path}.template.spec.containers"
        yield Violation(where, "has no container", such_as("containers"), CauseReason.REQUIRED)


def _spec(job: MPIJob, ctx: Context, folders: Mapping[str, str]) -> Iterator[Violation]:
    if (job.spec.slots_per_worker or 0) < 0:
        slots, least = job.spec.slots_per_worker, Sizes.of(job, ctx).fewest_slots(ctx.admitted.slots.least)
        yield Violation("spec.slotsPerWorker", f"is {slots}, must not be negative", f"Use {least} or more.")
    if not job.spec.ssh_auth_mount_path:
        yield Violation("spec.sshAuthMountPath", "is empty", "Remove it, or name a folder.", CauseReason.REQUIRED)
    elif CONFIG_FOLDER in folders.values():
        fault = f"the operator mounts the hostfile at {CONFIG_FOLDER}, and a pod cannot mount two volumes at one path"
        home = "/home/mpiuser" if any(spec.template.user for _, _, spec in job.replicas) else "/root"
        fix = f"Set it to {home}/.ssh, or to .ssh in the home of the user."
        yield Violation("spec.sshAuthMountPath", fault, fix)
    if job.spec.mpi_implementation not in IMPLEMENTATIONS:
        yield _not_one_of("spec.mpiImplementation", job.spec.mpi_implementation, IMPLEMENTATIONS)
    if job.spec.launcher_creation_policy not in CREATION_POLICIES:
        yield _not_one_of("spec.launcherCreationPolicy", job.spec.launcher_creation_policy, CREATION_POLICIES)


def _run_policy(job: MPIJob) -> Iterator[Violation]:
    policy = job.run_policy
    if policy.scheduling_policy is not None and policy.scheduling_policy.min_resources:
        least = ".schedulingPolicy.minResources", policy.scheduling_policy.min_resources
        yield from _quantities("spec.runPolicy", [least])
    if policy.clean_pod_policy not in CLEAN_POD_POLICIES:
        yield _not_one_of("spec.runPolicy.cleanPodPolicy", policy.clean_pod_policy, CLEAN_POD_POLICIES)
    for field, value in (
        ("ttlSecondsAfterFinished", policy.ttl_seconds_after_finished),
        ("activeDeadlineSeconds", policy.active_deadline_seconds),
        ("backoffLimit", policy.backoff_limit),
    ):
        if value is not None and value < 0:
            path, fix = f"spec.runPolicy.{field}", "Remove it, or set it to 0 or more."
            yield Violation(path, f"is {value}, must not be negative", fix, degree=Degree(path, -value))
    if policy.managed_by is not None and policy.managed_by not in MANAGERS:
        unsupported = _not_one_of("spec.runPolicy.managedBy", policy.managed_by, MANAGERS)
        yield unsupported if unsupported.fix.startswith("Write") else replace(unsupported, fix="Remove it.")


def _reserved(pod: PodSpec, path: str, volumes: Sequence[str], folders: Mapping[str, str]) -> Iterator[Violation]:
    """Conflicts with the `volumes` that the operator adds and mounts in `folders`, each with its normalized path."""
    for index, volume in enumerate(pod.volumes or ()):
        if volume.name in volumes:
            fault = f'"{volume.name}" is reserved for the operator'
            fix = f"Write {volume.name}-2 here and in volumeMounts."
            yield Violation(f"{path}.volumes[{index}].name", fault, fix)
    mounts = pod.containers[0].volume_mounts if pod.containers else None
    if not mounts:
        return
    paths = "\n".join([mount.mount_path for mount in mounts])
    # Every spelling of a folder's path contains the folder's name.
    suspect = paths and [folder for folder in folders.values() if folder.rpartition("/")[2] in paths]
    elsewhere = "Mount it elsewhere, such as at /data."
    for index, mount in enumerate(mounts if suspect else ()):
        where = f"{path}.containers[0].volumeMounts[{index}].mountPath"
        same = mount.mount_path in folders
        folder = _folder(mount.mount_path)
        parent = next((reserved for reserved in folders.values() if folder.startswith(f"{reserved}/")), None)
        if parent and folder.removeprefix(f"{parent}/") not in FILES:
            fault = (
                f'"{mount.mount_path[:100]}" cannot be created in {parent[:100]}, which the operator mounts read-only'
            )
            yield Violation(where, fault, elsewhere)
        if same or folder in folders.values():
            hidden = "" if same else ", and one hides the other"
            fault = f'the operator itself mounts something at "{mount.mount_path[:100]}"{hidden}'
            of_keys = "Remove this mount and its volume: the operator makes the keys."
            fix = elsewhere if folder == CONFIG_FOLDER else of_keys
            yield Violation(where, fault, fix, advisory=not same)


def _overwritten(template: PodTemplate, path: str, restart_policy: str | None) -> Iterator[Violation]:
    pod, labels = template.spec or PodSpec(), template.labels
    overwritten = [f"metadata.labels[{key}]" for key in RESERVED_LABELS if key in labels]
    if pod.hostname:
        overwritten.append("spec.hostname")
    if pod.subdomain:
        overwritten.append("spec.subdomain")
    for field in overwritten:
        yield Violation(f"{path}.template.{field}", "the operator overwrites it", "Remove it.", advisory=True)
    applied = restart_policy or "Never"
    if pod.restart_policy not in {None, "", applied}:
        where, fix = f"{path}.template.spec.restartPolicy", f"Remove it, or set {path}.restartPolicy."
        yield Violation(where, f"the operator overwrites it with {applied}", fix, advisory=True)


def _first_container(containers: Sequence[Container], path: str, role: str, job: MPIJob) -> Iterator[Violation]:
    env = containers[0].env if containers else None
    overwritten = operator_env.values(role, job) if env else {}
    for index, variable in enumerate(env or ()):
        same = overwritten.get(variable.name)
        if same is not None and (variable.value or "") not in same:
            fault, fix = f"the operator's {variable.name} wins", "Remove it."
            name = variable.name.removeprefix(ENV_PREFIX)
            given = {parameter for call in job.mpirun_calls for parameter, _ in mca.parameters(call.words)}
            if name not in {"orte_default_hostfile", variable.name, *given}:
                fault = f"is lost (the operator sets {variable.name})"
                fix = f"Use mpirun -mca {name} {shlex.quote(variable.value or '')}."
                if variable.value is None or len(fix) > MAX_MCA_ADVICE_CHARACTERS:
                    fix = f"Use mpirun -mca {name} VALUE."
            yield Violation(f"{path}[0].env[{index}]", fault, fix, advisory=True)
    if len(containers) > 1:
        yield from _not_first(containers, path, role, job)


def _not_first(containers: Sequence[Container], path: str, role: str, job: MPIJob) -> Iterator[Violation]:
    """A later container with the program or devices that only the first container should have."""
    if role == LAUNCHER:
        does, may_run, runs = "runs mpirun", mpirun.mentions, mpirun.runs
    else:
        does, may_run, runs = "runs sshd", sshd.starts, sshd.ends_in
    computes = role == WORKER or job.spec.run_launcher_as_worker
    for index, container in enumerate(containers[1:], start=1):
        if mpirun.shows(containers[0]) and not may_run(containers[0]) and runs(container):
            fault = does
        elif computes and _accelerators(container) and not _accelerators(containers[0]):
            fault = "has accelerators"
        else:
            continue
        yield Violation(f"{path}[{index}]", f"{fault}, but is not the pod's first", "Put it first.", advisory=True)
        return


def _accelerators(container: Container) -> int:
    return accelerators(container, DEFAULT_ACCELERATORS)


def _folder(path: str) -> str:
    """The normalized path. `normpath` alone keeps two slashes at the start."""
    return path if _PLAIN.fullmatch(path) else normpath(f"/{path.lstrip('/')}")


def quantities(template: PodTemplate, _: Context) -> list[Written]:
    return quantity_fields.of_template(template)


def _quantities(start: str, written: Sequence[Written]) -> Iterator[Violation]:
    for where, amounts in written:
        for name, value in amounts.items():
            try:
                amount = quantity.parse(value)
            except quantity.QuantityError as error:
                yield Violation(start + quantity_fields.place(where, name), str(error), error.fix(name))
                continue
            if amount < 0:
                path = start + quantity_fields.place(where, name)
                fault = f"is {quantity.format(amount)}, must not be negative"
                yield Violation(path, fault, "Set it to 0 or more, or remove it.", degree=Degree(path, -amount))


def _not_one_of(path: str, value: str | None, allowed: tuple[str, ...]) -> Violation:
    shown = (value or "")[:100]
    fix = names.choose(_MEANT.get(shown.lower(), shown), allowed)
    return Violation(path, f'"{shown}" is not supported', fix, CauseReason.NOT_SUPPORTED)
