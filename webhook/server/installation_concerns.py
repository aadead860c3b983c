"""Checks the service's webhook configurations and permissions every minute.

The problems (concerns) appear in the log, in a metric and in `/readyz`, which still passes. `mpijob-webhook doctor`
checks more. The watches report missing permissions for the kinds that rules use.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, NoReturn

from webhook.client.access_reviews import has_right
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import KubernetesObject, get
from webhook.installation import registration
from webhook.installation.components import KEY_REMOVAL
from webhook.installation.doctor import rights
from webhook.installation.doctor.checks import hooks, installed
from webhook.installation.doctor.diagnosis import Diagnosis
from webhook.installation.doctor.facts import KUEUE_CONFIGURATION, Location
from webhook.server.settings import ServeSettings
from webhook.server.telemetry import Telemetry

INTERVAL_SECONDS: Final = 60.0
FIX: Final = "Apply the manifests again"


async def follow(api: Client, settings: ServeSettings, telemetry: Telemetry, concerns: dict[str, str]) -> NoReturn:
    """Keep `concerns` up to date: problems by their ids in the runbook."""
    while True:
        try:
            diagnoses = [diagnosis async for diagnosis in _diagnoses(api, settings)]
        except ClusterError as error:
            telemetry.log.info("installation not checked", reason=str(error))
        else:
            _report(diagnoses, telemetry, concerns)
        await asyncio.sleep(INTERVAL_SECONDS)


def _report(diagnoses: list[Diagnosis], telemetry: Telemetry, concerns: dict[str, str]) -> None:
    before = dict(concerns)
    concerns.clear()
    for diagnosis in diagnoses:
        text = f"{diagnosis.text}. {diagnosis.fix}"
        concerns[diagnosis.id] = f"{concerns[diagnosis.id]}; {text}" if diagnosis.id in concerns else text
    for concern in before | concerns:
        telemetry.metrics.set("configuration_concerns", concern in concerns, concern)
        if concerns.get(concern) not in {None, before.get(concern)}:
            telemetry.log.warning("installation", concern=concern, message=concerns[concern])


async def _diagnoses(api: Client, settings: ServeSettings) -> AsyncIterator[Diagnosis]:
    location = Location(namespace=settings.policy_namespace, kueue_namespace=settings.kueue_namespace)
    client = registration.by_service(location.namespace, location.service)
    mutating = [await _configuration(api, "MutatingWebhookConfiguration", KUEUE_CONFIGURATION)]
    for expected in registration.configurations(client, labels={}, policy_namespace=location.namespace):
        configuration = await _configuration(api, expected["kind"], registration.NAME)
        if configuration is None:
            yield hooks.missing(expected, fix=FIX)
        elif expected["kind"] == "MutatingWebhookConfiguration":
            mutating.append(configuration)
    existing = [configuration for configuration in mutating if configuration]
    for diagnosis in hooks.after_kueue(existing):
        yield diagnosis
    chosen = settings.options | ({KEY_REMOVAL.option} if settings.remove_keys else set())
    purposes = rights.beyond_view(location, ca_secret=settings.ca_secret, options=chosen)
    allowed = {right: await has_right(api, right) for purpose in purposes for right in purpose.rights}
    for diagnosis in installed.missing(purposes, allowed, fix=FIX):
        yield diagnosis


async def _configuration(api: Client, kind: str, name: str) -> KubernetesObject | None:
    """The webhook configuration; None if it does not exist, empty without the permission to read it."""
    try:
        return await get(api, f"{registration.API}/{registration.RESOURCES[kind]}/{name}")
    except ApiError as error:
        if error.status != 403:
            raise
        return {}
