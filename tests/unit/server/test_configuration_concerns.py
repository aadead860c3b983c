"""What the service says at its start about the webhook configurations."""

import copy
from typing import Any

import pytest

from webhook.client.calls import ApiError, ClusterError
from webhook.installation import manifests, registration
from webhook.server.configuration_concerns import KUEUE, report_concerns
from webhook.server.ops import Readiness
from webhook.server.telemetry import Telemetry

OURS = manifests.webhooks()[0]


class Log:
    def __init__(self) -> None:
        self.warnings: list[dict[str, Any]] = []
        self.infos: list[dict[str, Any]] = []

    def warning(self, _: str, **fields: Any) -> None:
        self.warnings.append(fields)

    def info(self, _: str, **fields: Any) -> None:
        self.infos.append(fields)


class Api:
    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.paths: list[str] = []

    async def request(self, method: str, path: str) -> dict[str, Any]:
        assert method == "GET"
        self.paths.append(path.rsplit("/", 1)[-1])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        found: dict[str, Any] = answer
        return found


async def told(*answers: Any) -> tuple[Log, float | None]:
    """The log, and the metric for the hook for SSH keys. What is logged is shown in `/readyz` too."""
    api: Any = Api(*answers)
    log = Log()
    telemetry = Telemetry(log)
    readiness = Readiness()
    await report_concerns(api, telemetry, readiness)
    assert readiness.ready
    shown = [f"[!]{each['concern']}: {each['message']}. {each['advice']}\n" for each in log.warnings]
    assert readiness.report() == "".join([*shown, "readyz check passed\n"])
    assert api.paths == [registration.NAME, KUEUE]
    name = "mpijob_webhook_configuration_concerns"
    return log, telemetry.registry.get_sample_value(name, {"concern": "secret-hook-unguarded"})


def kueue(name: str = KUEUE) -> dict[str, Any]:
    return {"metadata": {"name": name}, "webhooks": [{"name": "mmpijob.kb.io"}]}


async def test_nothing_is_said_of_an_installation() -> None:
    log, metric = await told(OURS, kueue())
    assert (log.warnings, log.infos, metric) == ([], [], None)


async def test_a_hook_for_keys_without_conditions_must_not_fail_closed() -> None:
    """An API server before 1.28 drops the conditions."""
    older = copy.deepcopy(OURS)
    for hook in older["webhooks"]:
        hook.pop("matchConditions", None)
    log, metric = await told(older, ApiError(404, "none"))
    assert [each["concern"] for each in log.warnings] == ["secret-hook-unguarded"]
    assert "1.28" in log.warnings[0]["advice"]
    assert metric == 1


async def test_kueue_must_come_after_us() -> None:
    log, _ = await told(OURS, kueue("a-kueue"))
    assert [each["concern"] for each in log.warnings] == ["configuration-order"]
    assert "Kueue does not see the queue" in log.warnings[0]["message"]


@pytest.mark.parametrize("fault", [ApiError(403, "no right"), ClusterError("no answer")])
async def test_what_cannot_be_read_is_no_concern(fault: Exception) -> None:
    log, _ = await told(fault, fault)
    assert log.warnings == []
    assert [each["name"] for each in log.infos] == [registration.NAME, KUEUE]
