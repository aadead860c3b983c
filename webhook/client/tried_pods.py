"""Whether an API server would accept pods: a dry run with the user's own rights, which creates nothing."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from webhook.client.access_reviews import Right, has_right
from webhook.client.calls import ApiError, Client

# A quota counts a job when its pods start. The rule `resource-quota` gives a better answer.
_OF_QUOTA = "exceeded quota:"


async def refusals(
    api: Client,
    namespace: str,
    pods: Mapping[str, Mapping[str, Any]],
    *,
    before: Callable[[], None] = lambda: None,
) -> dict[str, str] | None:
    """By the keys of `pods`, why the API server rejects them; None for a user who may not create pods.

    `before` is called before each pod is tried. ClusterError if the API server does not answer.
    """
    try:
        allowed = await has_right(api, Right("create", "", "pods", namespace))
    except ApiError:
        allowed = False
    if not allowed:
        return None
    before()
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods?dryRun=All"

    async def said(pod: Mapping[str, Any]) -> str:
        try:
            await api.request("POST", path, dict(pod))
        except ApiError as error:
            return error.said if error.status < 500 and _OF_QUOTA not in error.said else ""
        return ""

    answers = await asyncio.gather(*map(said, pods.values()))
    return {role: answer for role, answer in zip(pods, answers, strict=True) if answer}
