"""What a policy change would do to the jobs that exist: they are listed from the API server and replayed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import date
from typing import Any
from urllib.parse import urlencode

import msgspec

from webhook.active_policy import PolicySet
from webhook.cluster import wire
from webhook.cluster.connection import Connection
from webhook.cluster.view import ClusterView
from webhook.cluster.wire import Fault
from webhook.replay import Replay, Replayer

JOBS = "/apis/kubeflow.org/v2beta1/mpijobs"
PAGE = 200
# Jobs judged at a stretch: other reviews wait for that long, a few milliseconds.
PORTION = 20


async def replay(
    connection: Connection,
    *,
    before: PolicySet,
    after: PolicySet,
    view: ClusterView,
    today: date,
    time_left: Callable[[], float],
) -> Replay:
    """The outcome for every existing job, or for as many as can be judged in time; Fault when none can be listed."""
    replayer = Replayer(before=before, after=after, view=view, today=today)
    async for jobs in _pages(connection):
        for start in range(0, len(jobs), PORTION):
            if time_left() <= 0:
                replayer.result.complete = False
                return replayer.result
            replayer.add(jobs[start : start + PORTION])
            await asyncio.sleep(0)
    return replayer.result


async def _pages(connection: Connection) -> AsyncIterator[list[msgspec.Raw]]:
    token = ""
    while True:
        query: dict[str, Any] = {"limit": PAGE} | ({"continue": token} if token else {})
        page = wire.decode(wire.pages, await connection.page(f"{JOBS}?{urlencode(query)}"))
        yield page.items or []
        if not page.metadata.token:
            return
        if page.metadata.token == token:
            raise Fault(wire.Reason.GARBAGE, "a list without end")
        token = page.metadata.token
