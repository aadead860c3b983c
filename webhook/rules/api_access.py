"""Pods have a token for the Kubernetes API only if they name a service account.

The injection of the same name turns the token off for all other pods. This rule reports pods that still get a token,
because the injection is off or skipped, a controller owns the job, or `automountServiceAccountToken` is true without an
account. Nothing is reported if the ServiceAccount `default` gives its pods no token. A projected volume with a
`serviceAccountToken` is reported for any audience. A token in a Secret of the namespace is not seen.

Pods that need the API should name a `serviceAccountName`, even if it is `default`. The account should have no more
permissions than the pods need.
"""

from collections.abc import Iterator

from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.settings import WarningRuleSettings
from webhook.predict.api_token import gets_token
from webhook.rules import Degree, Violation, rule


class Settings(WarningRuleSettings):
    """No settings except the action."""


@rule("api-access", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    for _, path, replica in job.replicas:
        pod = replica.template.spec
        if pod is None or pod.service_account_name or pod.service_account:
            continue
        if token := gets_token(pod, ctx.view, ctx.namespace):
            fix = "Set automountServiceAccountToken: false."
            # An update that turns a possible token (0) into a certain token (1) is a new fault.
            degree = Degree(path, int(token is True))
            yield Violation(f"{path}.template.spec", "gets an API token", fix=fix, degree=degree)
        for index, volume in enumerate(pod.volumes or ()):
            if volume.projected is None:
                continue
            for place, source in enumerate(volume.projected.sources or ()):
                if source.service_account_token:
                    where = f"{path}.template.spec.volumes[{index}].projected.sources[{place}].serviceAccountToken"
                    yield Violation(where, "is an API token", fix="Remove it, or name a serviceAccountName.")
