"""What Trainer and JobSet do otherwise than mpi-operator: checks in the place of rules, or beside them.

What JobSet refuses shows only after a TrainJob is stored: Trainer logs it, and no pod is made. Upstream:
https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go (`ValidateCreate`).
"""

from collections.abc import Iterator
from typing import Any, Final

from webhook.api import names, trainer
from webhook.api.mpijob import LAUNCHER, WORKER, replica_path
from webhook.api.trainer import at, mapping
from webhook.predict.trainer.replicated_jobs import JOB_SET, launcher_is_node
from webhook.predict.trainer.shape import Shape
from webhook.rules import CauseReason, Violation, shortened

# JobSet's own stand-in for what Kubernetes adds to the names of pods.
_OF_A_POD: Final = "-abcde"
_NODES: Final = f"{replica_path(WORKER)}.replicas"
_FIX: Final = "Correct it in the runtime."


def longest_name(shape: Shape) -> Iterator[Violation]:
    """The name leaves room for those of the pods."""
    name, generated = str(shape.metadata.get("name") or ""), str(shape.metadata.get("generateName") or "")
    if not shape.job or not (name or generated):
        return  # a runtime's name reaches no pod
    if names.is_generated(name, generated):
        path, kind, suffix = "metadata.generateName", "generateName", names.GENERATED_SUFFIX_LENGTH
        length = min(len(generated), names.GENERATED_BASE_MAX_LENGTH) + suffix
    else:
        path, kind, suffix, length = "metadata.name", "name", 0, len(name)
    ends = [f"-{each.name}-{max(each.replicas, 1) - 1}-{max(each.pods, 1) - 1}{_OF_A_POD}" for each in shape.jobs]
    longest = max(ends, key=len, default="")
    room = names.DNS_LABEL_MAX_LENGTH - len(longest)
    if length > room:
        fault = f"{length} characters, and with {longest} a pod's name has more than {names.DNS_LABEL_MAX_LENGTH}"
        fix = f"Use a {kind} of at most {room - suffix} characters."
        yield Violation(path, f"{fault} (JobSet refuses it)", fix=fix)


def job_set(shape: Shape) -> Iterator[Violation]:
    """What JobSet, or the Jobs that it makes, would be refused for."""
    known: set[str] = set()
    for each in shape.jobs:
        path = f"{JOB_SET}.replicatedJobs[{each.index}]"
        if problem := names.dns_1035_label_problem(f"a-{each.name}-0"):
            fault = f'"{shortened(each.name, 40)}" makes no name of a Job, which {problem}'
            yield Violation(f"{path}.name", fault, fix=_FIX)
        known.add(each.name)
        if each.depends_on and not each.index:
            yield Violation(f"{path}.dependsOn", "the first of the replicatedJobs cannot depend on another", fix=_FIX)
        elif before := [name for one in each.depends_on if (name := str(one.get("name"))) not in known]:
            fault = f'"{shortened(before[0], 40)}" is not among the replicatedJobs before it'
            yield Violation(f"{path}.dependsOn", fault, fix=_FIX, reason=CauseReason.NOT_SUPPORTED)
        if at(each.template, "spec").get("restartPolicy") == "Always":
            field = f"{path}.template.spec.template.spec.restartPolicy"
            yield Violation(field, "is Always, which no Job takes", fix="Use OnFailure or Never.")
        if each.pods < 1:
            number = f"{_NODES}" if each.name == trainer.NODE else path
            yield Violation(number, f"{each.pods} pods of {each.name}, at least 1 required", fix="Set it to 1 or more.")
    yield from _of_all(at(shape.runtime, "template", "spec"), known)


def _of_all(spec: dict[str, Any], known: set[str]) -> Iterator[Violation]:
    targets = mapping(spec.get("successPolicy")).get("targetReplicatedJobs")
    for name in map(str, targets if isinstance(targets, list) else ()):
        if name not in known:
            fault = f'"{shortened(name, 40)}" is none of the replicatedJobs'
            path = f"{JOB_SET}.successPolicy.targetReplicatedJobs"
            yield Violation(path, fault, fix=_FIX, reason=CauseReason.NOT_SUPPORTED)
            return
    subdomain = at(spec, "network").get("subdomain")
    if subdomain and (problem := names.dns_1035_label_problem(str(subdomain))):
        fault = f'"{shortened(str(subdomain), 40)}" is no name of a Service, which {problem}'
        yield Violation(f"{JOB_SET}.network.subdomain", fault, fix=_FIX)


def nodes(shape: Shape) -> Iterator[Violation]:
    """Numbers of nodes of which Trainer makes others."""
    wanted = at(shape.job, "trainer").get("numNodes")
    launcher, node = shape.replicated_job(trainer.LAUNCHER), shape.replicated_job(trainer.NODE)
    if wanted == 1 and launcher_is_node(shape.runtime) and launcher is not None and node is not None:
        fault = "1 node, and Trainer makes two pods with all resources: the launcher is a node too"
        yield Violation(_NODES, fault, fix="Set numNodes to 2, which is the same.", advisory=True)
    if launcher is not None and launcher.of_trainer and launcher.pods > 1:
        fault = f"{launcher.pods} launchers, of which each starts all ranks"
        fix = f"Set numNodes of the runtime to 1; for more nodes, parallelism of {trainer.NODE}."
        yield Violation(replica_path(LAUNCHER), fault, fix=fix, advisory=True)


def other_image(shape: Shape) -> Iterator[Violation]:
    """Ranks run in the image of their nodes, which a TrainJob's image does not reach (kubeflow/trainer#2825)."""
    own = at(shape.job, "trainer").get("image")
    node = shape.replicated_job(trainer.NODE)
    if not own or node is None or node.of_trainer or node.node is None:
        return
    image = node.containers[node.node].get("image")
    if image and image != own:
        fault = f"is the launcher's alone, and the ranks of nodes run in {shortened(str(image), 60)}"
        yield Violation("spec.trainer.image", fault, fix="Use a runtime with this image.", advisory=True)


def key(shape: Shape) -> Iterator[Violation]:
    """Trainer mounts the key with mode 0640, owned by root: ssh as root refuses it, and others need its group.

    `MPISSHPrivateKeyFileMode` of Trainer's `pkg/constants/constants.go`. A script may copy it to another place.
    """
    launcher = shape.replicated_job(trainer.LAUNCHER)
    if launcher is None or launcher.node is None:
        return
    path, user = f"{replica_path(LAUNCHER)}.template.spec", user_of_launcher(shape)
    of_pod = at(launcher.template, "spec", "securityContext")
    if user == 0:
        fault = "is root, and ssh takes no key of root's that its group may read, as Trainer mounts it"
        fix = "Run as another user, with fsGroup, and sshAuthMountPath in its home."
        yield Violation(f"{path}.securityContext", fault, fix=fix, advisory=True)
    elif user is not None and not any(of_pod.get(field) is not None for field in ("fsGroup", "supplementalGroups")):
        own = at(launcher.containers[launcher.node], "securityContext").get("runAsGroup", of_pod.get("runAsGroup"))
        if own != 0:
            fault = f"user {user} cannot read the key, which Trainer mounts for root and its group"
            fix = f"Set fsGroup to {user}."
            yield Violation(f"{path}.securityContext.fsGroup", fault, fix=fix, advisory=True)


def user_of_launcher(shape: Shape) -> int | None:
    """Who the launcher runs as; None where its image decides."""
    launcher = shape.replicated_job(trainer.LAUNCHER)
    if launcher is None or launcher.node is None:
        return None
    own = at(launcher.containers[launcher.node], "securityContext").get("runAsUser")
    user = at(launcher.template, "spec", "securityContext").get("runAsUser") if own is None else own
    return user if isinstance(user, int) else None
