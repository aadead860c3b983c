"""What the service reports about its webhook configurations and its rights while it runs."""

import asyncio
import copy
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from tests.support.logs import Log
from webhook.client.access_reviews import SELF_PATH
from webhook.client.calls import ApiError, ClusterError
from webhook.installation import manifests, registration
from webhook.installation.doctor.facts import KUEUE_CONFIGURATION
from webhook.server import installation_concerns
from webhook.server.settings import ServeSettings
from webhook.server.telemetry import Telemetry

MUTATING, VALIDATING = (f"{plural}/{registration.NAME}" for plural in registration.RESOURCES.values())
KUEUE = f"{registration.RESOURCES['MutatingWebhookConfiguration']}/{KUEUE_CONFIGURATION}"
INSTALLED = dict(zip((MUTATING, VALIDATING), manifests.webhooks(), strict=True))


class Api:
    """An API server with some webhook configurations, which grants every right except those with a word of `denied`."""

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
        found = self.configurations.get("/".join(path.rsplit("/", 2)[-2:]), ApiError(404, "none"))
        if isinstance(found, Exception):
            raise found
        return dict(found)


class Installation:
    """The service's look at `api`."""

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


def without_conditions() -> dict[str, Any]:
    """An API server before 1.28 drops the conditions."""
    older = copy.deepcopy(INSTALLED[MUTATING])
    for hook in older["webhooks"]:
        hook.pop("matchConditions", None)
    return older


ALL = {**INSTALLED, KUEUE: kueue()}


@pytest.mark.parametrize(
    ("api", "settings", "concern", "text"),
    [
        pytest.param(Api({**ALL, MUTATING: ApiError(404, "")}), {}, "configuration-missing", "nothing is injected"),
        pytest.param(Api({**ALL, VALIDATING: ApiError(404, "")}), {}, "configuration-missing", "jobs are not checked"),
        pytest.param(Api({**ALL, MUTATING: without_conditions()}), {}, "secret-hook-unguarded", "before 1.28"),
        pytest.param(Api({**ALL, KUEUE: kueue("a-kueue")}), {}, "configuration-order", "Kueue does not see the queue"),
        pytest.param(Api(ALL, denied="leases"), {}, "right-missing", "two jobs may get the same quota"),
        pytest.param(Api(ALL, denied="create events"), {}, "right-missing", "what is wrong with them is not reported"),
        pytest.param(Api(ALL, denied="subjectaccessreviews"), {}, "right-missing", "exemptions by annotation"),
        pytest.param(Api(ALL, denied="validatingwebhook"), {}, "right-missing", "configurations"),
        pytest.param(Api(ALL, denied="get namespaces"), {}, "right-essential", "no verdict"),
        pytest.param(Api(ALL, denied="configmaps"), {}, "right-essential", "policies are not followed"),
        pytest.param(Api(ALL, denied="secrets"), {"ca_secret": "ca"}, "right-essential", "not renewed"),
        pytest.param(Api(ALL, denied="secrets"), {"remove_keys": True}, "right-missing", "keys of ended jobs stay"),
    ],
)
async def test_a_fault_is_a_concern_until_it_is_over(
    api: Api, settings: dict[str, Any], concern: str, text: str
) -> None:
    installation = Installation(api, **settings)
    await installation.look()
    assert text in installation.concerns[concern]
    assert "\n" not in installation.concerns[concern]
    assert installation.metric(concern) == 1
    await installation.look()
    assert [level for level, event, _ in installation.log.lines if event == "installation"] == ["warning"] * len(
        installation.concerns
    )
    api.configurations, api.denied = dict(ALL), ""
    await installation.look()
    assert (installation.concerns, installation.metric(concern)) == ({}, 0)


@pytest.mark.parametrize("configurations", [ALL, INSTALLED])
async def test_nothing_is_reported_of_an_installation(configurations: Mapping[str, Any]) -> None:
    installation = Installation(Api(configurations))
    await installation.look()
    assert (installation.concerns, installation.log.lines) == ({}, [])


async def test_configurations_that_must_not_be_read_are_not_missing() -> None:
    installation = Installation(Api(dict.fromkeys(ALL, ApiError(403, "no right"))))
    await installation.look()
    assert installation.concerns == {}


@pytest.mark.parametrize("fault", [ClusterError("no answer"), ApiError(500, "broken")])
async def test_without_an_answer_the_last_concerns_stay(fault: Exception) -> None:
    api = Api({VALIDATING: ALL[VALIDATING]})
    installation = Installation(api)
    await installation.look()
    before = dict(installation.concerns)
    api.configurations[VALIDATING] = fault
    await installation.look()
    assert installation.concerns == before != {}


async def test_rights_on_kinds_that_are_watched_are_not_asked_for() -> None:
    api = Api(ALL)
    await Installation(api).look()
    assert not [right for right in api.asked if right.startswith(("list pods", "watch nodes"))]
    assert len(api.asked) < 20
