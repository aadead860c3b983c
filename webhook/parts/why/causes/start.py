"""Containers that end again and again, or that do not start, as reported by the kubelet."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut, merged
from webhook.parts.why.causes import ends, logs
from webhook.parts.why.sight import ROLE, WORKER, Json, Sight

_IMAGE: Final = frozenset({
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
})  # fmt: skip
_CONFIG: Final = frozenset({"CreateContainerConfigError"})
_START: Final = frozenset({"CreateContainerError", "RunContainerError", "StartError", "PostStartHookError"})
_CRASH: Final = "CrashLoopBackOff"
_OF_PODS: Final = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedCreatePodContainer")
_NO_SECRET: Final = re.compile(r"image pull secrets \(([^)]+)\)")
_BACK_OFF: Final = re.compile(r"Back-off pulling image \"[^\"]*\":? ?")
REFERENCES: Final = frozenset({"references"})
IMAGES: Final = frozenset({"images"})


def causes(sight: Sight) -> Iterator[Cause]:
    if sight.finished == "Succeeded":
        return
    yield from merged((loose.name(pod), cause) for pod in sight.current for cause in _of_pod(sight, pod))


def _of_pod(sight: Sight, pod: Json) -> Iterator[Cause]:
    # A deleted pod is not a fault: the operator deletes workers after the launcher's end. `disruption` reports a lost
    # pod, whose status has a reason.
    gone = loose.at(pod, "metadata", "deletionTimestamp") is not None or loose.text(pod, "status", "reason")
    if gone or not loose.text(pod, "spec", "nodeName"):
        return
    name = loose.name(pod)
    waits = False
    for status in statuses(pod):
        if cause := _of_container(sight, pod, status) or _of_init_container(sight, pod, status):
            yield cause
            return
        waits = waits or bool(loose.mapping(status, "state", "waiting"))
    if waits or not statuses(pod):
        for event in sight.events_about(name, *_OF_PODS):
            message = cut(loose.text(event, "message"))
            fix = "Create what is missing, or correct its name in the template."
            yield Cause("mount", Stage.START, message, f"Event {event.get('reason')} of Pod {name}", fix, REFERENCES)
            return
    yield from _not_ready(sight, pod)


def statuses(pod: Json) -> list[Json]:
    """The statuses of all containers, init containers first."""
    return [*loose.items(pod, "status", "initContainerStatuses"), *loose.items(pod, "status", "containerStatuses")]


def _of_container(sight: Sight, pod: Json, status: Json) -> Cause | None:
    waiting = loose.mapping(status, "state", "waiting")
    reason, message = loose.text(waiting, "reason"), loose.text(waiting, "message")
    container = loose.text(status, "name")
    where = f"Pod {loose.name(pod)}, container {container}"
    if reason in _IMAGE:
        details = cut(_BACK_OFF.sub("", message) or _event(sight, pod, "Failed"))
        image = loose.text(status, "image") or _image(pod, container)
        text = f"image {image} cannot be pulled: {details or reason}"
        fix = "Correct the image's name and tag; for a private registry name a Secret in imagePullSecrets."
        if missing := _NO_SECRET.search(_event(sight, pod, "FailedToRetrieveImagePullSecret")):
            text = f"{text}; the pull secret {missing[1]} does not exist"
            fix = f"Create the Secret {missing[1]} in this namespace, or correct imagePullSecrets in the template."
        return Cause("image", Stage.START, text, where, fix, IMAGES)
    if reason in _CONFIG:
        if "runAsNonRoot" in message or "non-numeric user" in message:
            fix = "Set runAsUser to a user of the image that is not 0, or use another image."
            return Cause(
                "runs-as-root", Stage.START, cut(message), where, fix, frozenset({"pod-security", "ssh-paths"})
            )
        fix = "Create it, or correct its name in env, envFrom or the volumes."
        return Cause("config", Stage.START, f"container {container} lacks {cut(message)}", where, fix, REFERENCES)
    ended = loose.mapping(status, "state", "terminated") or loose.mapping(status, "lastState", "terminated")
    if reason in _START or loose.text(ended, "reason") in _START | {"ContainerCannotRun"}:
        details = cut(message or loose.text(ended, "message"))
        fix = "Correct the command: the program must be in the image, and the user must be allowed to run it."
        return Cause("start", Stage.START, f"container {container} does not start: {details}", where, fix)
    return _ended(sight, pod, status)


def _ended(sight: Sight, pod: Json, status: Json) -> Cause | None:
    crashes = loose.text(status, "state", "waiting", "reason") == _CRASH
    is_init = _is_init(pod, status)
    # launcher.py reports the end of the launcher's own containers.
    if not (crashes or loose.mapping(status, "state", "terminated")) or not (is_init or pod_is_worker(pod)):
        return None
    cause = ends.cause(sight, pod, status, Stage.START)
    if cause is None or not is_init:
        return cause
    container = loose.text(status, "name")
    return replace(cause, text=f"init container {container}: {cause.text.removeprefix(f'container {container} ')}")


def _of_init_container(sight: Sight, pod: Json, status: Json) -> Cause | None:
    """The cause for a running init container. The containers after it wait for its end, unless it is a sidecar."""
    if not loose.mapping(status, "state", "running") or not initializes(pod, status):
        return None
    name, container = loose.name(pod), loose.text(status, "name")
    started = loose.moment(status, "state", "running", "startedAt")
    after = f" after {sight.since(started)}" if started else ""
    last = logs.last(sight.logs.get(name, ""))
    text = f"init container {container} has not ended{after}{last and f'; its last line is: {cut(last)}'}"
    fix = f"Wait, or look at what it waits for: kubectl logs {name} -c {container}"
    return Cause("init-container", Stage.START, text, f"Pod {name}, init container {container}", fix, passes=True)


def initializes(pod: Json, status: Json) -> bool:
    """Whether the status belongs to an init container that is not a sidecar."""
    containers = loose.items(pod, "spec", "initContainers")
    sidecars = [container.get("name") for container in containers if container.get("restartPolicy")]
    return _is_init(pod, status) and status.get("name") not in sidecars


def _is_init(pod: Json, status: Json) -> bool:
    return any(item is status for item in loose.items(pod, "status", "initContainerStatuses"))


def _not_ready(sight: Sight, pod: Json) -> Iterator[Cause]:
    """The cause for a worker whose probe fails. The operator may create no launcher until workers are ready."""
    if (
        loose.holds(sight.job, "Running")
        or not pod_is_worker(pod)
        or loose.text(pod, "status", "phase") != "Running"
        or loose.holds(pod, "Ready")
    ):
        return
    name = loose.name(pod)
    message = cut(_event(sight, pod, "Unhealthy")) or cut(loose.text(loose.condition(pod, "Ready"), "message"))
    text = f"it runs, but is not ready: {message or 'its probe has not succeeded'}"
    fix = "Compare port and command of readinessProbe with how sshd is started."
    yield Cause("not-ready", Stage.START, text, f"Pod {name}, Ready", fix, passes=True)


def pod_is_worker(pod: Json) -> bool:
    return loose.text(pod, "metadata", "labels", ROLE) == WORKER


def _event(sight: Sight, pod: Json, reason: str) -> str:
    return next((loose.text(event, "message") for event in sight.events_about(loose.name(pod), reason)), "")


def _image(pod: Json, container: str) -> str:
    templates = [*loose.items(pod, "spec", "initContainers"), *loose.items(pod, "spec", "containers")]
    return next((loose.text(template, "image") for template in templates if template.get("name") == container), "")
