"""Once, when it is ready, the service looks at how the API server is configured to call it.

Each concern goes to the log, and for as long as the process lives to a metric and to `/readyz`, which passes all the
same; `mpijob-webhook doctor` finds more.
"""

from collections.abc import Sequence
from typing import Final

from webhook.client.calls import Client, ClusterError
from webhook.client.objects import KubernetesObject, get
from webhook.installation import registration
from webhook.installation.doctor.checks.order import after_kueue
from webhook.installation.doctor.checks.secret_hook import unguarded
from webhook.installation.doctor.diagnosis import Diagnosis
from webhook.installation.doctor.facts import KUEUE_CONFIGURATION
from webhook.server.ops import Readiness
from webhook.server.telemetry import Telemetry

# As Kueue's own manifests call it; a Helm release with another name is for `doctor` to find.
KUEUE: Final = KUEUE_CONFIGURATION


async def report_concerns(api: Client, telemetry: Telemetry, readiness: Readiness) -> None:
    """Log, count and show what is wrong with the webhook configurations; one that cannot be read is no concern."""
    found: list[KubernetesObject] = []
    for name in (registration.NAME, KUEUE):
        path = f"{registration.API}/{registration.RESOURCES['MutatingWebhookConfiguration']}/{name}"
        try:
            if configuration := await get(api, path):
                found.append(configuration)
        except ClusterError as error:
            telemetry.log.info("webhook configuration not looked at", name=name, reason=str(error))
    for concern in concerns(found):
        telemetry.log.warning("webhook configuration", concern=concern.id, message=concern.text, advice=concern.fix)
        telemetry.configuration_concerns.labels(concern.id).set(1)
        readiness.concern(concern.id, f"{concern.text}. {concern.fix}")


def concerns(mutating: Sequence[KubernetesObject]) -> tuple[Diagnosis, ...]:
    """What is wrong with the MutatingWebhookConfigurations of a cluster: ours, and Kueue's where it can be read."""
    return (*unguarded(mutating), *after_kueue(mutating))
