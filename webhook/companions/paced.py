"""Calls at a bounded rate: whatever happens in the cluster, a companion makes no storm of requests."""

import asyncio
from typing import Any

from webhook.client.calls import Client
from webhook.companions.limits import MAX_CALLS_AT_ONCE, MAX_CALLS_PER_SECOND


class PacedClient:
    """A client whose calls wait for their turn."""

    requests: int = 0
    """Calls made so far."""

    def __init__(self, api: Client, *, rate: float = MAX_CALLS_PER_SECOND, burst: int = MAX_CALLS_AT_ONCE) -> None:
        self._api = api
        self._rate = rate
        self._burst = burst
        self._clock = asyncio.get_running_loop().time
        self._full = self._clock()

    async def request(
        self, method: str, path: str, body: dict[str, Any] | list[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """As `Client.request`, when it is its turn."""
        now = self._clock()
        # The generic cell rate algorithm: when the bucket will be full again, were there no more calls.
        self._full = max(self._full, now) + 1 / self._rate
        if (wait := self._full - now - self._burst / self._rate) > 0:
            await asyncio.sleep(wait)
        self.requests += 1
        return await self._api.request(method, path, body)
