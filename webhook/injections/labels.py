"""Jobs and pods get labels by which users find and count them.

The job gets `training.kubeflow.org/job-type: mpijob`, for dashboards and selectors. The setting `job` adds labels to
the job, such as a cost centre. The setting `pods` adds labels to both pod templates. Labels of Kueue are not allowed in
these settings. The injections `kueue-queue` and `kueue-priority` add them, because these injections check whether Kueue
would start the job.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import Field, field_validator

from webhook.api import names
from webhook.api.kueue import PREFIX
from webhook.api.mpijob import MPIJob
from webhook.injections import injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, Form, a_text, in_templates
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings

# The operator overwrites labels with this prefix on pods and uses them in selectors.
OPERATOR_PREFIX = "training.kubeflow.org/"
JOB_TYPE = "training.kubeflow.org/job-type"


class Settings(InjectionSettings):
    """Labels in addition to the job type."""

    job: dict[str, str] = Field({}, description="Labels for the job, in addition to the job type.")
    pods: dict[str, str] = Field({}, description="Labels for the pods of launcher and workers.")

    @field_validator("job", "pods")
    @classmethod
    def _labels(cls, labels: dict[str, str]) -> dict[str, str]:
        for key, value in labels.items():
            problem = names.label_key_problem(key) or names.label_value_problem(value)
            if key.startswith(OPERATOR_PREFIX):
                problem = f"{OPERATOR_PREFIX} belongs to the MPI operator"
            if key.startswith(PREFIX):
                problem = f"{PREFIX} belongs to Kueue: use the injections kueue-queue and kueue-priority"
            if problem:
                raise ValueError(f"{key}: {problem}")
        return labels


FORMS: Final = (
    Form(("metadata", "labels", ITEM), a_text, ComesBack.WRITTEN_TODAY),
    *in_templates("metadata", "labels", ITEM, holds=a_text, when=ComesBack.WRITTEN_TODAY),
)


@injection("labels", Settings, since="0.1", importance=Importance.MINOR, forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    added = patch.add_entries(("metadata", "labels"), {JOB_TYPE: "mpijob", **settings.job})
    for role, _, _ in job.replicas if settings.pods else ():
        path = (*template_path(role), "metadata", "labels")
        added |= patch.add_entries(path, settings.pods)
    if added:
        yield "added " + ", ".join(f"{key}={value}" for key, value in added.items())
