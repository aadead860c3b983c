"""Starts the audit."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

from webhook.client.watch import Watch
from webhook.controllers.reconciler import PacedClient
from webhook.server.clock import today
from webhook.server.controllers import Surroundings, run_reconciler
from webhook.server.metrics import MetricSet


async def start(stack: AsyncExitStack, around: Surroundings) -> Callable[[], None] | None:
    options = around.settings.options
    if options.isdisjoint(("--audit", "--audit-reports")):
        return None
    from webhook.parts.standing_audit.metrics import AUDIT_METRICS, measured  # noqa: PLC0415
    from webhook.parts.standing_audit.reports import POLICY_REPORTS, REPORTS, Reports  # noqa: PLC0415
    from webhook.parts.standing_audit.standing import StandingAudit  # noqa: PLC0415

    link, log = around.link, around.telemetry.log
    api, reports = PacedClient(link.api), None
    if "--audit-reports" in options:
        watches = [Watch(kind, link.connection, log=log) for kind in (REPORTS, POLICY_REPORTS)]
        reports = Reports(api=api, watches=watches)
        around.readiness.concerns_of(reports.concerns)
    audit = StandingAudit(
        connection=link.connection,
        api=api,
        view=link.view,
        policies=around.policies,
        today=today,
        log=log,
        reports=reports,
    )
    MetricSet(AUDIT_METRICS, around.telemetry.job_registry).on_scrape(partial(measured, audit))
    around.readiness.concerns_of(audit.concerns)

    followed = () if reports is None else reports.watches
    await run_reconciler(stack, around, audit.reconciler, api, *followed, work=audit.run)
    return audit.resync
