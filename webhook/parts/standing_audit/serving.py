"""Starts the audit."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

from webhook.parts.standing_audit import OPTION
from webhook.server.background import in_background
from webhook.server.clock import today
from webhook.server.controllers import Surroundings
from webhook.server.metrics import MetricSet


async def start(stack: AsyncExitStack, around: Surroundings) -> Callable[[], None] | None:
    if OPTION not in around.settings.options:
        return None
    from webhook.parts.standing_audit.metrics import AUDIT_METRICS, measured  # noqa: PLC0415
    from webhook.parts.standing_audit.standing import StandingAudit  # noqa: PLC0415

    link, log = around.link, around.telemetry.log
    audit = StandingAudit(connection=link.connection, view=link.view, policies=around.policies, today=today, log=log)
    MetricSet(AUDIT_METRICS, around.telemetry.job_registry).on_scrape(partial(measured, audit))
    around.readiness.concerns_of(audit.concerns)

    async def begin() -> None:
        await link.settled.wait()
        await audit.run()

    await stack.enter_async_context(in_background("audit", begin, log=log, faults=link.faults))
    return audit.resync
