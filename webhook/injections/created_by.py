"""The name of the user who created the job.

The annotation `training.openshift.io/created-by` contains the user name that the API server authenticated when the job
was created. GPU-hours are attributed by this name. Therefore `training.openshift.io/skip` has no effect, and the rule
`created-by` rejects any other name and any change. If a controller creates a job for a user, as Argo Workflows does,
the annotation has the name of the controller's ServiceAccount. A copy by MultiKueue keeps the user name in the original
job. With impersonation, the annotation has the name of the impersonated user.
"""

from collections.abc import Iterator
from typing import Final

from webhook.api.annotations import CREATED_BY
from webhook.api.mpijob import MPIJob
from webhook.injections import injection
from webhook.kit.context import Context
from webhook.kit.forms import ComesBack, Form, a_text
from webhook.kit.patch import PatchBuilder
from webhook.kit.settings import InjectionSettings

PATH: Final = ("metadata", "annotations", CREATED_BY)
FORMS: Final = (Form(PATH, a_text, ComesBack.ALWAYS),)


@injection("created-by", InjectionSettings, since="0.1", unskippable=True, quiet=True, forms=FORMS)
def inject(job: MPIJob, settings: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    if ctx.username:  # unknown in `check` without a cluster
        patch.add(PATH, ctx.username)
    yield from ()
