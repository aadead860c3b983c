"""Starts the controllers that the settings switch on.

Most controllers belong to optional parts. A controller's modules are imported when it starts, because a service runs
few controllers and must start quickly.
"""

from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any

from webhook.client.watch import Watch
from webhook.controllers.reconciler import PacedClient, Reconciler
from webhook.kit.optional_parts import parts
from webhook.policy.in_force import PolicySet
from webhook.server.background import in_background
from webhook.server.cluster_link import ClusterLink
from webhook.server.ops import Readiness
from webhook.server.settings import ServeSettings
from webhook.server.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The objects that a controller uses."""

    settings: ServeSettings
    link: ClusterLink
    telemetry: Telemetry
    readiness: Readiness
    policies: Callable[[], PolicySet]


async def start_controllers(stack: AsyncExitStack, around: Surroundings) -> list[Callable[[], None]]:
    """Run the controllers until `stack` ends. Returns callbacks for policy changes."""
    if around.settings.remove_keys:
        await start_key_removal(stack, around)
    on_policies = [await resolve_name(part.start)(stack, around) for part in parts() if part.start]
    return [callback for callback in on_policies if callback is not None]


async def start_key_removal(stack: AsyncExitStack, around: Surroundings) -> None:
    from webhook.controllers.ssh.removal import KeyRemoval  # noqa: PLC0415

    link, api = around.link, PacedClient(around.link.api)
    namespace, log = around.settings.policy_namespace, around.telemetry.log
    removal = KeyRemoval(api=api, view=link.view, namespace=namespace, now=link.api.now, log=log)
    await run_reconciler(stack, around, removal.reconciler, api, work=removal.run)


async def run_watch(stack: AsyncExitStack, around: Surroundings, *watches: Watch[Any, Any]) -> None:
    around.telemetry.caches(watches)
    for watch in watches:
        around.readiness.concerns_of(partial(_unread, watch))
        await stack.enter_async_context(in_background(watch.kind.name, watch.run, log=around.telemetry.log))


def _unread(watch: Watch[Any, Any]) -> dict[str, str]:
    """The concern that this kind cannot be read; empty if the kind can be read or is not installed."""
    if watch.known or watch.not_installed or not watch.reason:
        return {}
    return {f"unknown-{watch.kind.name}": f"no information about {watch.kind.name}: {watch.reason}"}


async def run_reconciler(
    stack: AsyncExitStack,
    around: Surroundings,
    reconciler: Reconciler[Any],
    api: PacedClient,
    *watches: Watch[Any, Any],
    work: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Run a reconciler and its `watches` until `stack` ends. `work`, if given, runs instead of `reconciler.run`."""
    around.telemetry.companion(reconciler, api)
    around.readiness.concerns_of(lambda: {reconciler.name: reconciler.problem} if reconciler.problem else {})
    await run_watch(stack, around, *watches)

    async def begin() -> None:
        await around.link.settled.wait()  # before that, neither jobs nor the API server's clock are available
        await (work or reconciler.run)()

    log, faults = around.telemetry.log, around.link.faults
    await stack.enter_async_context(in_background(reconciler.name, begin, log=log, faults=faults))
