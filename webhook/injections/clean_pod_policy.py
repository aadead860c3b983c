"""Workers end with the job, unless the user keeps them for debugging.

Without `cleanPodPolicy` the operator keeps every worker after the end of the job: the worker's sshd runs for ever and
holds the worker's GPUs (mpi-operator `pkg/apis/kubeflow/v2beta1/default.go`; the field's documentation is wrong). The
injection sets `Running`, which ends the workers. With the annotation `training.openshift.io/debug-mode: "true"` it sets
`None`, which keeps the workers for inspection.

In debug mode the launcher also gets `restartPolicy: Never` if the job sets none. With the operator's default,
`OnFailure`, the launcher's pod restarts in place, and at `backoffLimit` Kubernetes deletes the pod and its log. With
`Never` each failed pod is kept (kubernetes `pkg/controller/job`, `deleteActivePods`). Outside debug mode, the warning
that lists the injections also says if the launcher's log will be lost.
"""

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import Field

from webhook.api import annotations
from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.injections import Caution, Hint, injection
from webhook.kit.context import Context
from webhook.kit.forms import ComesBack, Form, equal
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder
from webhook.kit.settings import InjectionSettings

PATH: Final = ("spec", "runPolicy", "cleanPodPolicy")
RESTART: Final = ("spec", "mpiReplicaSpecs", LAUNCHER, "restartPolicy")
NEVER: Final = "Never"
LOSES_LOG: Final = Hint(f"a failed launcher's log is deleted without restartPolicy: {NEVER}")
EFFECT = {
    "Running": "end with the job",
    "All": "are deleted with the job",
    "None": "stay after the job",
}


class Settings(InjectionSettings):
    """The treatment of the workers when the job ends."""

    policy: Literal["Running", "All", "None"] = Field(
        "Running", description="The cleanPodPolicy of jobs that set none and are not in debug mode."
    )


FORMS: Final = (Form(PATH, equal(*EFFECT)), Form(RESTART, equal(NEVER), ComesBack.WRITTEN_TODAY))


@injection("clean-pod-policy", Settings, since="0.1", importance=Importance.MINOR, forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    debug = job.annotations.get(annotations.DEBUG_MODE, "false")
    policy = "None" if debug == "true" else settings.policy
    if patch.add(PATH, policy):
        yield f"cleanPodPolicy: {policy}: workers {EFFECT[policy]}"
        if debug not in {"true", "false"}:
            shown = annotations.mention(annotations.DEBUG_MODE, debug)
            yield Caution(f'{shown} is not "true", so it has no effect')
    if job.launcher is None:
        return
    if debug != "true":
        if job.launcher.restart_policy in {None, "OnFailure"}:
            yield LOSES_LOG
    elif patch.add(RESTART, NEVER):
        yield f"set the launcher's restartPolicy: {NEVER}, so its failed pods stay with their logs"
    elif job.launcher.restart_policy != NEVER:
        yield Caution(f"the launcher's log is deleted with its pod: set its restartPolicy to {NEVER} to keep it")
