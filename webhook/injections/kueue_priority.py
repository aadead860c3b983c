"""Jobs in Kueue's queues get the policy's WorkloadPriorityClass.

Nothing is injected unless `priorityClass` is set. If Kueue manages MPIJobs in the namespace, a job without the label
`kueue.x-k8s.io/priority-class` gets the label with this class. Kueue uses the class for the order in the queue and for
preemption, not for the pods.

A class that does not exist is not injected, because Kueue would ignore the job. A warning names the missing class.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from webhook.api.kueue import PRIORITY_CLASS
from webhook.api.mpijob import MPIJob
from webhook.injections import Caution, injection
from webhook.kit.context import Context
from webhook.kit.forms import ComesBack, Form, a_text
from webhook.kit.patch import PatchBuilder
from webhook.kit.settings import InjectionSettings, NameInLabel
from webhook.predict.kueue.managed import manages
from webhook.predict.kueue.priority import has_workload_class

LABEL: Final = ("metadata", "labels", PRIORITY_CLASS)


class Settings(InjectionSettings):
    """The class."""

    priority_class: NameInLabel = Field("", description="The WorkloadPriorityClass of jobs that name none.")


FORMS: Final = (Form(LABEL, a_text, ComesBack.WRITTEN_TODAY),)


@injection("kueue-priority", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    name = settings.priority_class
    if not name or not job.managed_here or PRIORITY_CLASS in job.labels:
        return
    if manages(ctx.view, ctx.namespace) is not True:
        return
    exists = has_workload_class(ctx.view, name)
    if exists is False:
        yield Caution(f'WorkloadPriorityClass "{name}" of the policy does not exist')
    elif exists is True and patch.add(LABEL, name):
        yield f"added {PRIORITY_CLASS}={name}: it decides the place in the queue"
