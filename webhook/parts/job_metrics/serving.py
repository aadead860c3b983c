"""Starts the modules that the options require."""

from contextlib import AsyncExitStack

from webhook.client.watch import Watch
from webhook.controllers.reconciler import PacedClient
from webhook.server.controllers import Surroundings, run_reconciler, run_watch


async def start(stack: AsyncExitStack, around: Surroundings) -> None:
    options, link, telemetry = around.settings.options, around.link, around.telemetry
    if options.isdisjoint(("--deadline-events", "--job-metrics")):
        return
    from webhook.parts.job_metrics.telemetry import JOB_LIVES, JobTelemetry  # noqa: PLC0415

    jobs = JobTelemetry(telemetry.job_registry, link.view)
    lives = Watch(JOB_LIVES, link.connection, log=telemetry.log)
    if "--job-metrics" in options:
        jobs.follow(lives)
        telemetry.on_validated.append(jobs.decided)
    if "--deadline-events" in options:
        from webhook.parts.job_metrics.deadline_events import LAUNCHERS, DeadlineEvents  # noqa: PLC0415

        launchers, api = Watch(LAUNCHERS, link.connection, log=telemetry.log), PacedClient(link.api)
        events = DeadlineEvents(api=api, lives=lives, launchers=launchers, now=link.api.now, log=telemetry.log)
        telemetry.metrics.on_scrape(
            lambda: (("deadline_events_total", (name,), n) for name, n in events.outcomes.items())
        )
        jobs.deadlines(events.remaining)
        await run_reconciler(stack, around, events.reconciler, api, launchers)
    await run_watch(stack, around, lives)
