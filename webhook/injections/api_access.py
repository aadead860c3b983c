"""Pods get no token for the Kubernetes API unless a service account was chosen for them.

Training does not use the API server, and a token in every worker is a credential that can be stolen. If a pod template
names no service account, `automountServiceAccountToken: false` is injected. A template that names an account, even
`default`, stays unchanged. A value of the user for `automountServiceAccountToken` stays.
"""

from collections.abc import Iterator
from typing import Final

from webhook.api.mpijob import MPIJob
from webhook.injections import injection
from webhook.kit.context import Context
from webhook.kit.forms import equal, in_templates
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings

FORMS: Final = in_templates("spec", "automountServiceAccountToken", holds=equal(False))


@injection("api-access", InjectionSettings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    roles = []
    for role, _, replica in job.replicas:
        pod = replica.template.spec
        # A missing spec is not added, because a spec without containers is invalid.
        if pod is None or pod.service_account_name or pod.service_account:
            continue
        if patch.add((*template_path(role), "spec", "automountServiceAccountToken"), False):
            roles.append(role)
    if roles:
        yield f"no Kubernetes API token for {' and '.join(roles)}; set serviceAccountName where one is needed"
