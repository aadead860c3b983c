"""Pods get no token for the Kubernetes API unless a service account was chosen for them.

Training does not talk to the API server, and a token in every worker is a credential to steal. Where no service account
is named, `automountServiceAccountToken: false` is injected. A job that names one, even `default`, has chosen it. What a
user wrote for `automountServiceAccountToken` stays.
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
    """Set `automountServiceAccountToken: false` on the pod templates."""
    roles = []
    for role, _, replica in job.replicas():
        pod = replica.template.spec
        # A template without a spec stays so: an added one would lack the containers that the schema requires of it.
        if pod is None or pod.service_account_name or pod.service_account:
            continue
        if patch.add((*template_path(role), "spec", "automountServiceAccountToken"), False):
            roles.append(role)
    if roles:
        yield f"no Kubernetes API token for {' and '.join(roles)}; set serviceAccountName where one is needed"
