"""Rejections in the API server's answers to the dry run of a pod."""

import asyncio
from typing import Any

import pytest

from webhook.client.calls import ApiError
from webhook.client.tried_pods import refusals

QUOTA = 'pods "train-launcher" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=4, limited: pods=4'
POLICY = "ValidatingAdmissionPolicy 'teams' denied request: a pod needs a label"


class Api:
    """Allows the user to create pods, and answers each dry run with an error."""

    def __init__(self, status: int, message: str) -> None:
        self._error = ApiError(status, message, message)
        self.calls: list[str] = []

    async def request(self, _: str, path: str, *__: Any) -> Any:
        if "selfsubjectaccessreviews" in path:
            return {"status": {"allowed": True}}
        self.calls.append(path)
        raise self._error


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        pytest.param(422, POLICY, {"launcher": POLICY}, id="an admission policy"),
        pytest.param(403, QUOTA, {}, id="a quota, which the rule `resource-quota` checks"),
        pytest.param(500, "failed calling webhook", {}, id="a fault of the cluster"),
    ],
)
def test_rejection_by_an_admission_policy_is_reported_and_other_errors_are_not(
    status: int, message: str, expected: dict[str, str]
) -> None:
    api, announced = Api(status, message), []
    result = refusals(api, "team-a", {"launcher": {}}, before=lambda: announced.append(len(api.calls)))  # type: ignore[arg-type]
    assert asyncio.run(result) == expected
    assert announced == [0]
