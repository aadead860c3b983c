"""The running service reports faults of its webhook configurations and permissions."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.installation.looked_at import ALL, INSTALLED, KUEUE, MUTATING, VALIDATING, Api, Installation, kueue
from tests.support.paths import ROOT
from webhook.client.calls import ApiError, ClusterError


@pytest.mark.parametrize(
    ("api", "settings", "concern", "text"),
    [
        (Api({**ALL, MUTATING: ApiError(404, "")}), {}, "configuration-missing", "nothing is injected"),
        (Api({**ALL, VALIDATING: ApiError(404, "")}), {}, "configuration-missing", "jobs are not checked"),
        (Api({**ALL, KUEUE: kueue("a-kueue")}), {}, "configuration-order", "Kueue does not get the injected queue"),
        (Api(ALL, denied="leases"), {}, "right-missing", "two jobs may get the same quota"),
        (Api(ALL, denied="create events"), {}, "right-missing", "faults of broken ones are not reported"),
        (Api(ALL, denied="subjectaccessreviews"), {}, "right-missing", "exemptions by annotation"),
        (Api(ALL, denied="validatingwebhook"), {}, "right-missing", "configurations"),
        (Api(ALL, denied="get namespaces"), {}, "right-essential", "no verdict"),
        (Api(ALL, denied="configmaps"), {}, "right-essential", "policies are not followed"),
        (Api(ALL, denied="secrets"), {"ca_secret": "ca"}, "right-essential", "not renewed"),
        (Api(ALL, denied="secrets"), {"remove_keys": True}, "right-missing", "keys of ended jobs stay"),
    ],
)
async def test_fault_is_a_concern_until_it_is_fixed(
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
    assert f"`{concern}`" in (ROOT / "docs" / "runbook.md").read_text().partition("## What `/readyz` says")[2]


@pytest.mark.parametrize("configurations", [ALL, INSTALLED])
async def test_correct_installation_has_no_concerns(configurations: Mapping[str, Any]) -> None:
    installation = Installation(Api(configurations))
    await installation.look()
    assert (installation.concerns, installation.log.lines) == ({}, [])


async def test_unreadable_configurations_are_not_reported_as_missing() -> None:
    installation = Installation(Api(dict.fromkeys(ALL, ApiError(403, "no right"))))
    await installation.look()
    assert installation.concerns == {}


@pytest.mark.parametrize("fault", [ClusterError("no answer"), ApiError(500, "broken")])
async def test_concerns_stay_while_the_api_server_does_not_answer(fault: Exception) -> None:
    api = Api({VALIDATING: ALL[VALIDATING]})
    installation = Installation(api)
    await installation.look()
    before = dict(installation.concerns)
    api.configurations[VALIDATING] = fault
    await installation.look()
    assert installation.concerns == before != {}


async def test_permissions_on_watched_kinds_are_not_queried() -> None:
    api = Api(ALL)
    await Installation(api).look()
    assert not [right for right in api.asked if right.startswith(("list pods", "watch nodes"))]
    assert len(api.asked) < 20
