"""Starts the controllers that the settings switch on. They run next to reviews and do not affect them.

Each controller's modules are imported when it starts: a service runs few of them, and must start quickly.
"""

from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from webhook.client.watch import Watch
from webhook.companions.network_policy import NAME, RULE
from webhook.companions.reconciler import PacedClient, Reconciler
from webhook.policy import layers
from webhook.policy.in_force import PolicySet
from webhook.server.background import in_background
from webhook.server.clock import today
from webhook.server.cluster_link import ClusterLink
from webhook.server.ops import Readiness
from webhook.server.settings import ServeSettings
from webhook.server.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a controller is started with."""

    settings: ServeSettings
    link: ClusterLink
    telemetry: Telemetry
    readiness: Readiness
    policies: Callable[[], PolicySet]
    """Those in force now."""


async def start_companions(stack: AsyncExitStack, around: Surroundings) -> list[Callable[[], None]]:
    """Run the controllers that the settings switch on until `stack` ends; returns callbacks for changes of policies."""
    if around.settings.remove_keys:
        await start_key_removal(stack, around)
    await start_job_lives(stack, around)
    on_policies = []
    if around.settings.audit or around.settings.audit_reports:
        on_policies.append(await start_audit(stack, around))
    if around.settings.network_policies:
        on_policies.append(await start_network_policies(stack, around))
    else:
        around.readiness.concerns_of(lambda: not_made(around.policies()))
    return on_policies


async def start_key_removal(stack: AsyncExitStack, around: Surroundings) -> None:
    """Delete the SSH keys of jobs that have ended."""
    from webhook.companions.ssh.removal import KeyRemoval  # noqa: PLC0415

    link, api = around.link, PacedClient(around.link.api)
    namespace, log = around.settings.policy_namespace, around.telemetry.log
    removal = KeyRemoval(api=api, view=link.view, namespace=namespace, now=link.api.now, log=log)
    await run_reconciler(stack, around, removal.reconciler, api, work=removal.run)


async def start_job_lives(stack: AsyncExitStack, around: Surroundings) -> None:
    """Start what depends on the life cycle of jobs, and the watch for it."""
    settings, link, telemetry = around.settings, around.link, around.telemetry
    if not (settings.deadline_events or settings.job_metrics):
        return
    from webhook.companions.job_watches import JOB_LIVES, LAUNCHERS  # noqa: PLC0415

    lives = Watch(JOB_LIVES, link.connection, log=telemetry.log)
    if settings.job_metrics:
        telemetry.jobs.follow(lives, link.view)
    if settings.deadline_events:
        from webhook.companions.deadline_events import DeadlineEvents  # noqa: PLC0415

        launchers, api = Watch(LAUNCHERS, link.connection, log=telemetry.log), PacedClient(link.api)
        events = DeadlineEvents(api=api, lives=lives, launchers=launchers, now=link.api.now, log=telemetry.log)
        telemetry.metrics.on_scrape(
            lambda: (("deadline_events_total", (name,), n) for name, n in events.outcomes.items())
        )
        telemetry.jobs.deadlines(events.remaining)
        await run_reconciler(stack, around, events.reconciler, api, launchers)
    await run_watch(stack, around, lives)


async def run_watch(stack: AsyncExitStack, around: Surroundings, *watches: Watch[Any, Any]) -> None:
    """Run watches that only controllers need, until `stack` ends."""
    around.telemetry.caches(watches)
    for watch in watches:
        around.readiness.concerns_of(partial(_unread, watch))
        await stack.enter_async_context(in_background(watch.kind.name, watch.run, log=around.telemetry.log))


def _unread(watch: Watch[Any, Any]) -> dict[str, str]:
    """What the controllers cannot read, for the administrator. A kind that is not installed is not a concern."""
    if watch.known or watch.not_installed or not watch.reason:
        return {}
    return {f"unknown-{watch.kind.name}": f"nothing is known of {watch.kind.name}: {watch.reason}"}


async def start_network_policies(stack: AsyncExitStack, around: Surroundings) -> Callable[[], None]:
    """Start the NetworkPolicies of jobs; returns the callback for changes of policies."""
    from webhook.companions.network_policy.upkeep import NETWORK_POLICIES, NetworkPolicies  # noqa: PLC0415

    link, log = around.link, around.telemetry.log
    api, watch = PacedClient(link.api), Watch(NETWORK_POLICIES, link.connection, log=log)
    companion = NetworkPolicies(api=api, view=link.view, watch=watch, policies=around.policies, log=log)
    await run_reconciler(stack, around, companion.reconciler, api, watch, work=companion.run)
    return companion.resync


async def start_audit(stack: AsyncExitStack, around: Surroundings) -> Callable[[], None]:
    """Start judging existing jobs; returns the callback for changes of policies."""
    from webhook.companions.audit.reports import POLICY_REPORTS, REPORTS, Reports  # noqa: PLC0415
    from webhook.companions.audit.standing import StandingAudit  # noqa: PLC0415

    link, log = around.link, around.telemetry.log
    api, reports = PacedClient(link.api), None
    if around.settings.audit_reports:
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
    around.telemetry.jobs.audit(audit)
    around.readiness.concerns_of(audit.concerns)

    followed = () if reports is None else reports.watches
    await run_reconciler(stack, around, audit.reconciler, api, *followed, work=audit.run)
    return audit.resync


async def run_reconciler(
    stack: AsyncExitStack,
    around: Surroundings,
    reconciler: Reconciler[Any],
    api: PacedClient,
    *watches: Watch[Any, Any],
    work: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Run a reconciler, or the `work` around it, and the watches that only it needs, until `stack` ends."""
    around.telemetry.companion(reconciler, api)
    around.readiness.concerns_of(lambda: {reconciler.name: reconciler.problem} if reconciler.problem else {})
    await run_watch(stack, around, *watches)

    async def begin() -> None:
        await around.link.settled.wait()  # until then neither jobs nor the API server's clock are available
        await (work or reconciler.run)()

    log, faults = around.telemetry.log, around.link.faults
    await stack.enter_async_context(in_background(reconciler.name, begin, log=log, faults=faults))


def not_made(policies: PolicySet) -> dict[str, str]:
    """What policies require although the controller for it is switched off."""
    rules = [layers.written(layer.document).get("rules") or {} for layer in policies.layers]
    settings = [rule.get(RULE, {}) for rule in rules]
    if any({each.get("posture", "none"), *each.get("choices", ())} != {"none"} for each in settings):
        return {NAME: "a policy sets or offers a posture, and without --network-policies no job gets a NetworkPolicy"}
    return {}
