"""Checks that replace or complement rules where Trainer differs from mpi-operator."""

from collections.abc import Iterator
from typing import Final

from webhook.api import names
from webhook.api.mpijob import LAUNCHER, WORKER, replica_path
from webhook.api.untyped import at
from webhook.cluster.resources.config_maps import CONFIG_MAPS
from webhook.cluster.view import Answer
from webhook.kit.context import Context
from webhook.parts.trainer import kinds
from webhook.parts.trainer.replicated_jobs import launcher_is_node
from webhook.parts.trainer.shape import ROLES, Shape
from webhook.rules import CauseReason, Violation, shortened

# JobSet checks the length of pod names with this example of the random suffix.
_POD_SUFFIX: Final = "-abcde"
# Trainer's `runtimeSnapshotSuffix` and `MPIHostfileConfigMapSuffix`
_SNAPSHOT: Final = "-runtime-snapshot"
_HOSTFILE: Final = "-mpi-hostfile"
_NODES: Final = f"{replica_path(WORKER)}.replicas"


def longest_name(shape: Shape, _: Context) -> Iterator[Violation]:
    """Reports a TrainJob's name that is too long for the names of its pods."""
    name, generated = str(shape.metadata.get("name") or ""), str(shape.metadata.get("generateName") or "")
    if not shape.job or not (name or generated):
        return
    if names.is_generated(name, generated):
        path, kind, suffix = "metadata.generateName", "generateName", names.GENERATED_SUFFIX_LENGTH
        length = min(len(generated), names.GENERATED_BASE_MAX_LENGTH) + suffix
    else:
        path, kind, suffix, length = "metadata.name", "name", 0, len(name)
    ends = [f"-{job.name}-{max(job.replicas, 1) - 1}-{max(job.pods, 1) - 1}{_POD_SUFFIX}" for job in shape.jobs]
    longest = max(ends, key=len, default="")
    room = names.DNS_LABEL_MAX_LENGTH - len(longest)
    if length > room:
        fault = f"{length} characters, and with {longest} a pod's name has more than {names.DNS_LABEL_MAX_LENGTH}"
        fix = f"Use a {kind} of at most {room - suffix} characters."
        yield Violation(path, f"{fault} (JobSet rejects it)", fix=fix)


def left_to_jobs(shape: Shape) -> frozenset[str]:
    """Paths of images that TrainJobs must set, because the runtime does not."""
    return frozenset(
        f"{replica_path(ROLES[job.name])}.template.spec.containers[0].image"
        for job in (() if shape.job else shape.jobs)
        if job.of_trainer and job.name in ROLES and job.node is not None
        if not job.containers[job.node].get("image")
    )


def taken_names(shape: Shape, ctx: Context) -> Iterator[Violation]:
    """Reports that a different object owns a ConfigMap which Trainer must create. Trainer then retries forever.

    `getRuntimeSnapshot` in `pkg/runtime/core/snapshot.go` accepts only the job's snapshot. For the hostfile the API
    server rejects a second controller as owner.
    """
    name, uid = str(shape.metadata.get("name") or ""), shape.metadata.get("uid")
    for suffix in (_SNAPSHOT, _HOSTFILE) if name else ():
        child = ctx.view.get(CONFIG_MAPS, (ctx.namespace, f"{name}{suffix}"))
        if isinstance(child, Answer) or (child.owner is None and suffix == _HOSTFILE):
            continue
        owner = child.owner
        if owner is not None and owner.uid == uid:
            continue
        former = owner is not None and (owner.group, owner.kind, owner.name) == (kinds.GROUP, kinds.TRAIN_JOB, name)
        if child.deleted or former:
            whose = "is still being deleted" if child.deleted else "belongs to a former job of this name"
            fault, fix = f'ConfigMap "{child.name}" {whose}', "The job starts when it is gone."
        else:
            whose = f"belongs to {owner.kind} {owner.name}" if owner is not None else "is not the job's"
            fault = f'ConfigMap "{child.name}" exists and {whose}, so Trainer could never start the job'
            fix = "Rename the job, or delete that ConfigMap if it is not needed."
        advisory = child.deleted or former
        yield Violation("metadata.name", fault, fix=fix, reason=CauseReason.FORBIDDEN, advisory=advisory)


def nodes(shape: Shape) -> Iterator[Violation]:
    requested = at(shape.job, "trainer").get("numNodes")
    launcher, node = shape.replicated_job(kinds.LAUNCHER), shape.replicated_job(kinds.NODE)
    if requested == 1 and launcher_is_node(shape.runtime) and launcher is not None and node is not None:
        fault = "1 node, but Trainer creates two pods with all resources: the launcher is a node too"
        yield Violation(_NODES, fault, fix="Set numNodes to 2, which has the same effect.", advisory=True)
    if launcher is not None and launcher.of_trainer and launcher.pods > 1:
        fault = f"{launcher.pods} launchers, each of which starts all ranks"
        fix = f"Set numNodes of the runtime to 1; for more nodes, parallelism of {kinds.NODE}."
        yield Violation(replica_path(LAUNCHER), fault, fix=fix, advisory=True)


def other_image(shape: Shape) -> Iterator[Violation]:
    """Reports a TrainJob's image that its nodes do not use (kubeflow/trainer#2825). The nodes run the ranks."""
    launcher_image = at(shape.job, "trainer").get("image")
    node = shape.replicated_job(kinds.NODE)
    if not launcher_image or node is None or node.of_trainer or node.node is None:
        return
    image = node.containers[node.node].get("image")
    if image and image != launcher_image:
        fault = f"is only the launcher's image: the ranks on nodes run in {shortened(str(image), 60)}"
        yield Violation("spec.trainer.image", fault, fix="Use a runtime with this image.", advisory=True)


def key(shape: Shape) -> Iterator[Violation]:
    """Reports a launcher whose user cannot use the SSH key.

    The key that Trainer mounts belongs to root and has mode 0640 (`MPISSHPrivateKeyFileMode` in
    `pkg/constants/constants.go`). ssh as root rejects this mode, and other users must be in the group. A script may
    copy the key, so violations are advice.
    """
    launcher = shape.replicated_job(kinds.LAUNCHER)
    if launcher is None or launcher.node is None:
        return
    path, user = f"{replica_path(LAUNCHER)}.template.spec", user_of_launcher(shape)
    of_pod = at(launcher.template, "spec", "securityContext")
    if user == 0:
        fault = "is root, and ssh rejects root's key because Trainer mounts it readable for a group"
        fix = "Run as another user, with fsGroup, and sshAuthMountPath in its home."
        yield Violation(f"{path}.securityContext", fault, fix=fix, advisory=True)
    elif user is not None and not any(of_pod.get(field) is not None for field in ("fsGroup", "supplementalGroups")):
        group = at(launcher.containers[launcher.node], "securityContext").get("runAsGroup", of_pod.get("runAsGroup"))
        if group != 0:
            fault = f"user {user} cannot read the key, which Trainer mounts for root and its group"
            fix = f"Set fsGroup to {user}."
            yield Violation(f"{path}.securityContext.fsGroup", fault, fix=fix, advisory=True)


def user_of_launcher(shape: Shape) -> int | None:
    """The launcher's user ID; None if the image sets the user."""
    launcher = shape.replicated_job(kinds.LAUNCHER)
    if launcher is None or launcher.node is None:
        return None
    user = at(launcher.containers[launcher.node], "securityContext").get("runAsUser")
    if user is None:
        user = at(launcher.template, "spec", "securityContext").get("runAsUser")
    return user if isinstance(user, int) else None
