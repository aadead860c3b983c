"""Workers end with the job, unless the user wants to look into them.

Without `cleanPodPolicy` the operator keeps every worker after the end of the job: its sshd waits for ever and holds
its GPUs (mpi-operator `pkg/apis/kubeflow/v2beta1/default.go`; the field's documentation says otherwise). `Running` ends
them. The annotation `training.openshift.io/debug-mode: "true"` asks for `None`: the workers stay, to be looked into.
"""

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import Field

from webhook.api import annotations
from webhook.api.mpijob import MPIJob
from webhook.injections import Caution, injection
from webhook.kit.context import Context
from webhook.kit.forms import Form, equal
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder
from webhook.kit.settings import InjectionSettings

PATH: Final = ("spec", "runPolicy", "cleanPodPolicy")
EFFECT = {
    "Running": "that still run are removed when the job ends",
    "All": "are removed when the job ends",
    "None": "stay, with their GPUs, until the job is deleted",
}


class Settings(InjectionSettings):
    """What becomes of the workers when the job ends."""

    policy: Literal["Running", "All", "None"] = Field(
        "Running", description="The cleanPodPolicy of jobs that set none and are not in debug mode."
    )


FORMS: Final = (Form(PATH, equal(*EFFECT)),)


@injection("clean-pod-policy", Settings, since="0.1", importance=Importance.MINOR, forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    """Set `spec.runPolicy.cleanPodPolicy`."""
    debug = job.annotations.get(annotations.DEBUG_MODE, "false")
    policy = "None" if debug == "true" else settings.policy
    if patch.add(PATH, policy):
        yield f"set cleanPodPolicy: {policy}, so workers {EFFECT[policy]}"
        if debug not in {"true", "false"}:
            shown = annotations.mention(annotations.DEBUG_MODE, debug)
            yield Caution(f'{shown} is not "true", so it has no effect')
