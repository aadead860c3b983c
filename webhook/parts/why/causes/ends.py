"""The cause of a container's end, from its log, its reason or its exit code."""

from typing import Final

from webhook.api.annotations import WORKER_READINESS
from webhook.api.mpijob import WAIT_FOR_WORKERS
from webhook.api.sshd import WAIT_CONTAINER
from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut
from webhook.parts.why.causes import logs
from webhook.parts.why.sight import Json, Sight

# https://www.gnu.org/software/bash/manual/html_node/Exit-Status.html
_CODES: Final = {
    126: "its command cannot be executed",
    127: "its command is not in the image",
    137: "it was killed (SIGKILL)",
    139: "it crashed (SIGSEGV)",
    143: "it was ended from outside (SIGTERM)",
}


def cause(sight: Sight, pod: Json, status: Json, stage: Stage) -> Cause | None:
    ended = loose.mapping(status, "state", "terminated") or loose.mapping(status, "lastState", "terminated")
    code = loose.number(ended, "exitCode")
    if not ended or code == 0:
        return None
    name, container = loose.name(pod), loose.text(status, "name")
    where = f"Pod {name}, container {container}"
    if ended.get("reason") == "OOMKilled":
        limit = _limit(pod, container)
        text = f"container {container} used more memory than its limit{limit} (OOMKilled)"
        return Cause("out-of-memory", stage, text, where, "Raise limits.memory, or use less: /dev/shm counts too.")
    log = sight.logs.get(name, "")
    if message := logs.find(log):
        fix = f"{message.fix} {_early(sight, name)}".lstrip() if message.early else message.fix
        return Cause(message.id, stage, message.text, f"log of Pod {name}", fix, message.rules)
    meaning = _CODES.get(code or 0, "")
    text = f"container {container} ended with exit code {code}{meaning and f': {meaning}'}"
    output = logs.program_output(log)
    parts = (("Python raised", output.exception), ("its last line is", output.last), ("before that", output.error))
    text = "; ".join((text, *(f"{name}: {cut(part)}" for name, part in parts if part)))
    return Cause("exit-code", stage, text, where, f"kubectl logs {name} -c {container} has the rest.")


def _early(sight: Sight, launcher: str) -> str:
    """Advice on how a launcher can wait for its workers. In a queue, `launcherCreationPolicy` has no effect."""
    template = ("spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "initContainers")
    if any(container.get("name") == WAIT_CONTAINER for container in loose.items(sight.job, *template)):
        return f"The launcher waited for its workers: kubectl logs {launcher} -c {WAIT_CONTAINER} names those missing."
    readiness = loose.text(sight.job, "metadata", "annotations", WORKER_READINESS)
    queued = sight.queue or sight.suspended
    waits = loose.at(sight.job, "spec", "launcherCreationPolicy") == WAIT_FOR_WORKERS and not queued
    if waits or readiness not in {"", "false"}:
        return "The launcher waited for its workers, so this one has gone or has another port."
    ignored = " (in a queue launcherCreationPolicy has no effect)" if queued else ""
    fix = f'set the annotation {WORKER_READINESS} to the port of sshd, for example "22".'
    return f"The launcher may have started before its workers: {fix} The launcher then waits for them{ignored}."


def _limit(pod: Json, container: str) -> str:
    for template in loose.items(pod, "spec", "containers"):
        if template.get("name") == container and (limit := loose.at(template, "resources", "limits", "memory")):
            return f" of {limit}"
    return ""
