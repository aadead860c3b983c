"""A job without a queue of Volcano gets the queue of its namespace.

The queue of the namespace is the annotation `scheduling.volcano.sh/queue-name` of the Namespace, else the setting
`queue`. It is written to `spec.runPolicy.schedulingPolicy.queue`. Volcano itself sets the namespace's queue in a new
PodGroup, but the operator removes it at the next reconciliation: without this injection all jobs of the namespace are
in the queue `default`.

The injection is off unless the policy sets `enabled`, because a queue has an effect only if the operator runs with
`--gang-scheduling=volcano`. A job that names a queue, in the field or in its own annotation
`scheduling.volcano.sh/queue-name`, keeps it. A job in a queue of Kueue gets no queue of Volcano. A queue that does not
exist is not injected, and a warning names it. Nothing is injected if Volcano is not installed, or if its queues or the
Namespace are unknown.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from webhook.api import annotations
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import VOLCANO_QUEUE, MPIJob
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.volcano_queues import VOLCANO_QUEUES
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.injections import Caution, Note, injection
from webhook.kit.context import Context
from webhook.kit.forms import ComesBack, Form, a_text
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder
from webhook.kit.settings import InjectionSettings, ObjectName
from webhook.predict import volcano

FIELD: Final = ("spec", "runPolicy", "schedulingPolicy", "queue")
KUEUE_LABEL: Final = ("metadata", "labels", QUEUE_NAME)


class Settings(InjectionSettings):
    """The queue."""

    enabled: bool = Field(False, description="Whether anything is injected.")
    queue: ObjectName = Field(
        "", description="The queue of jobs whose Namespace names none; empty for Volcano's default queue."
    )


FORMS: Final = (Form(FIELD, a_text, ComesBack.WRITTEN_TODAY),)


@injection("volcano-queue", Settings, since="0.1", importance=Importance.FAILS, forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    if not job.managed_here or volcano.queue_of(job)[1] or patch.get(KUEUE_LABEL):
        return
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    name = namespace.annotations.get(VOLCANO_QUEUE) if isinstance(namespace, Namespace) else None
    name = name or settings.queue
    if not name:
        return
    queue = ctx.view.get(VOLCANO_QUEUES, name)
    if queue is ABSENT:
        yield Caution(f"not in queue {annotations.quoted(name)} of the namespace, which does not exist")
    elif queue is not UNKNOWN and patch.add(FIELD, name):
        yield Note(f"put into Volcano's queue {name}", brief=name)
