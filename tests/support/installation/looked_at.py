"""The service's checks of its webhook configurations and permissions at run time."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tests.support.logs import Log
from tools import manifests
from webhook.client.access_reviews import SELF_PATH
from webhook.client.calls import ApiError
from webhook.installation import registration
from webhook.installation.doctor.facts import KUEUE_CONFIGURATION
from webhook.server import installation_concerns
from webhook.server.settings import ServeSettings
from webhook.server.telemetry import Telemetry

MUTATING, VALIDATING = (f"{plural}/{registration.NAME}" for plural in registration.RESOURCES.values())
KUEUE = f"{registration.RESOURCES['MutatingWebhookConfiguration']}/{KUEUE_CONFIGURATION}"
INSTALLED = dict(zip((MUTATING, VALIDATING), manifests.webhooks(), strict=True))


class Api:
    """An API server with webhook configurations. It denies each `VERB RESOURCE` that contains `denied`."""

    def __init__(self, configurations: Mapping[str, Any], *, denied: str = "") -> None:
        self.configurations = dict(configurations)
        self.denied = denied
        self.asked: list[str] = []

    async def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        if path == SELF_PATH:
            right = body["spec"]["resourceAttributes"]
            self.asked.append(f"{right['verb']} {right['resource']}")
            return {"status": {"allowed": not self.denied or self.denied not in self.asked[-1]}}
        assert method == "GET"
        configuration = self.configurations.get("/".join(path.rsplit("/", 2)[-2:]), ApiError(404, "none"))
        if isinstance(configuration, Exception):
            raise configuration
        return dict(configuration)


class Installation:
    """The service's checks of `api`."""

    def __init__(self, api: Api, **settings: Any) -> None:
        self.api: Any = api
        self.settings = ServeSettings(**settings)
        self.log = Log()
        self.telemetry = Telemetry(self.log)
        self.concerns: dict[str, str] = {}

    async def look(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await installation_concerns.follow(self.api, self.settings, self.telemetry, self.concerns)

    def metric(self, concern: str) -> float | None:
        name = "mpijob_webhook_configuration_concerns"
        return self.telemetry.registry.get_sample_value(name, {"concern": concern})


def kueue(name: str = KUEUE_CONFIGURATION) -> dict[str, Any]:
    return {"metadata": {"name": name}, "webhooks": [{"name": "mmpijob.kb.io"}]}


ALL = {**INSTALLED, KUEUE: kueue()}
