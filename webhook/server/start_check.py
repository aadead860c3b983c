"""What the service looks at by itself when it starts: how the API server has been told to call it.

Each concern is in the log, and in a metric for as long as the process lives; `mpijob-webhook doctor` tells more.
"""

from collections.abc import Sequence
from typing import Final

from webhook.client.calls import ApiError, Client, ClusterError
from webhook.installation import registration
from webhook.installation.doctor.checks.order import after_kueue
from webhook.installation.doctor.checks.secret_hook import unguarded
from webhook.installation.doctor.diagnosis import Diagnosis
from webhook.installation.doctor.facts import KUEUE_CONFIGURATION, KubernetesObject
from webhook.server.telemetry import Telemetry

# As Kueue's own manifests call it; a Helm release with another name is for `doctor` to find.
KUEUE: Final = KUEUE_CONFIGURATION


async def warn_about_hooks(api: Client, telemetry: Telemetry) -> None:
    """Warn about webhook configurations that work against us; what cannot be read is no concern here."""
    found: list[KubernetesObject] = []
    for name in (registration.NAME, KUEUE):
        path = f"{registration.API}/{registration.RESOURCES['MutatingWebhookConfiguration']}/{name}"
        try:
            found.append(await api.request("GET", path))
        except ClusterError as error:
            if not (isinstance(error, ApiError) and error.status == 404):
                telemetry.log.info("webhook configuration not looked at", name=name, reason=str(error))
    for concern in concerns(found):
        telemetry.log.warning("webhook configuration", concern=concern.id, message=concern.text, advice=concern.fix)
        telemetry.configuration_concerns.labels(concern.id).set(1)


def concerns(mutating: Sequence[KubernetesObject]) -> tuple[Diagnosis, ...]:
    """What is wrong with the MutatingWebhookConfigurations of a cluster: ours, and as far as readable Kueue's."""
    return (*unguarded(mutating), *after_kueue(mutating))
