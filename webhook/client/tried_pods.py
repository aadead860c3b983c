"""Finds out by a dry run if the API server would accept pods."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from webhook.client.access_reviews import Right, has_right
from webhook.client.calls import ApiError, Client

# Denials by a quota are ignored, because the rule `resource-quota` checks all pods of the job together.
_OF_QUOTA = "exceeded quota:"


async def refusals(
    api: Client,
    namespace: str,
    pods: Mapping[str, Mapping[str, Any]],
    *,
    before: Callable[[], None] = lambda: None,
) -> dict[str, str] | None:
    """The API server's reason for each denied pod, by the keys of `pods`; None if the user may not create pods.

    `before` is called before the dry run. ClusterError if the API server does not answer.
    """
    try:
        allowed = await has_right(api, Right("create", "", "pods", namespace))
    except ApiError:
        allowed = False
    if not allowed:
        return None
    before()
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods?dryRun=All"

    async def refusal(pod: Mapping[str, Any]) -> str:
        try:
            await api.request("POST", path, dict(pod))
        except ApiError as error:
            return error.answer if error.status < 500 and _OF_QUOTA not in error.answer else ""
        return ""

    answers = await asyncio.gather(*map(refusal, pods.values()))
    return {role: answer for role, answer in zip(pods, answers, strict=True) if answer}
