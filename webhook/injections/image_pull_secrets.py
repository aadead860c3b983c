"""Pods get the policy's secrets to pull images from private registries.

Nothing is injected unless `secrets` are set. Both pod templates get the secrets that they do not name already. The
Secrets themselves must exist in the namespace. Kubernetes adds the pull secrets of the service account only to pods
without any pull secret (kubernetes `plugin/pkg/admission/serviceaccount/admission.go`). Therefore `secrets` must list
every secret that the pods need, which on OpenShift includes the secrets of the internal registry. Alternatively, add
the secrets to the service account.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from webhook.api.mpijob import MPIJob
from webhook.injections import injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, in_templates, with_fields
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings, ObjectNames


class Settings(InjectionSettings):
    """The secrets."""

    secrets: ObjectNames = Field((), description="Names of the pull secrets, in the namespace of the job.")


FORMS: Final = in_templates("spec", "imagePullSecrets", ITEM, holds=with_fields("name"), when=ComesBack.SAME_FILE)


@injection("image-pull-secrets", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    added: dict[str, None] = {}
    for role, _, replica in job.replicas if settings.secrets else ():
        if replica.template.spec is None:
            continue
        path = (*template_path(role), "spec", "imagePullSecrets")
        added |= dict.fromkeys(name for name in settings.secrets if patch.append(path, {"name": name}))
    if added:
        yield f"added imagePullSecrets {', '.join(added)}"
