"""What a change of policies would do to the jobs that exist, for the administrator who makes the change."""

import asyncio
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Final

from webhook.admission.replay import Replayer
from webhook.api import mpijob
from webhook.client.connection import Connection
from webhook.client.paging import pages
from webhook.client.wire import WatchFault
from webhook.cluster.view import ClusterView
from webhook.policy.in_force import PolicySet
from webhook.server.limits import JOBS_PER_PAGE
from webhook.work_limit import TooExpensive, limited

JOBS: Final = f"/apis/{mpijob.API_VERSION}/mpijobs"


async def policy_impact(
    connection: Connection,
    view: ClusterView,
    before: PolicySet,
    after: PolicySet,
    *,
    today: date,
    time_left: Callable[[], float],
) -> list[str]:
    """A line on the verdicts that would change, over every job or as many as can be listed and judged in time.

    And one on what would be injected, if that changes.
    """
    replayer = Replayer(before=before, after=after, view=view, today=today)
    listed = False
    try:
        async with asyncio.timeout(max(0, time_left())):
            async for page in pages(connection.list_page, JOBS, limit=JOBS_PER_PAGE):
                listed = True
                for job in page.items or ():
                    try:
                        replayer.count(limited(partial(replayer.judge, job)))
                    except TooExpensive:
                        replayer.result.too_expensive += 1
                    await asyncio.sleep(0)  # so that reviews go on
    except TimeoutError:
        if not listed:
            return ["what it would change is unknown: existing jobs were not listed in time"]
        replayer.result.complete = False
    except WatchFault as fault:
        return [f"what it would change is unknown: existing jobs cannot be listed ({fault})"]
    result = replayer.result
    return [line for line in (result.summary(), result.injections_summary()) if line]
