"""Pods get no Istio sidecar.

A sidecar breaks the direct connections of MPI and sshd between pods. While the sidecar runs, the launcher and the job
do not complete (mpi-operator issues 407 and 480). Therefore both pod templates get `sidecar.istio.io/inject: "false"`
as a label and as an annotation: some releases of Istio read the label, and others read the annotation. The job gets the
annotation too, for tools that read the job.

A user who wants the sidecar sets this label or annotation to "true" on a template, or on the job for both templates. A
template whose annotation requests the sidecar gets no label, because Istio prefers the label to the annotation (istio
`pkg/kube/inject/inject.go`, `injectRequired`).
"""

from collections.abc import Iterator
from typing import Final

from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodTemplate
from webhook.injections import Caution, injection
from webhook.kit.context import Context
from webhook.kit.forms import Form, equal, in_templates
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings

KEY = "sidecar.istio.io/inject"
# Values that Istio reads as yes, and the empty text, for which the namespace decides. All other values mean no.
NOT_OFF = frozenset({"", "y", "yes", "true", "on"})

FORMS: Final = (
    Form(("metadata", "annotations", KEY), equal("false")),
    *in_templates("metadata", "labels", KEY, holds=equal("false")),
    *in_templates("metadata", "annotations", KEY, holds=equal("false")),
)


@injection("istio", InjectionSettings, since="0.1", importance=Importance.MINOR, forms=FORMS)
def inject(job: MPIJob, settings: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    with_sidecar, added = [], []
    for role, _, replica in job.replicas:
        if requests_sidecar(job, replica.template):
            with_sidecar.append(role)
            continue
        metadata = (*template_path(role), "metadata")
        label_added = patch.add((*metadata, "labels", KEY), "false")
        if patch.add((*metadata, "annotations", KEY), "false") or label_added:
            added.append(role)
    if with_sidecar:
        yield Caution(
            f"{KEY} stays on for {' and '.join(with_sidecar)}: a sidecar blocks MPI ports and the launcher's end"
        )
    elif patch.add(("metadata", "annotations", KEY), "false"):
        added.append("job")
    if added:
        yield f'added {KEY}: "false" to {", ".join(added)}: MPI does not work through a sidecar'


def requests_sidecar(job: MPIJob, template: PodTemplate) -> bool:
    """Whether the user requests the sidecar, in the template or for the whole job."""
    for source in (template, job):
        choice = source.labels.get(KEY, source.annotations.get(KEY))
        if choice is not None:
            return choice.lower() in NOT_OFF
    return False
