"""Starts the controller for PodDisruptionBudgets."""

from collections.abc import Callable
from contextlib import AsyncExitStack

from webhook.client.watch import Watch
from webhook.controllers.reconciler import PacedClient
from webhook.parts.disruption_budgets import INJECTION, NAME, OPTION
from webhook.policy import layers
from webhook.policy.in_force import PolicySet
from webhook.server.controllers import Surroundings, run_reconciler


async def start(stack: AsyncExitStack, around: Surroundings) -> Callable[[], None] | None:
    if OPTION not in around.settings.options:
        around.readiness.concerns_of(lambda: not_made(around.policies()))
        return None
    from webhook.parts.disruption_budgets.upkeep import BUDGETS, DisruptionBudgets  # noqa: PLC0415

    link, log = around.link, around.telemetry.log
    api, watch = PacedClient(link.api), Watch(BUDGETS, link.connection, log=log)
    controller = DisruptionBudgets(api=api, view=link.view, watch=watch, policies=around.policies, log=log)
    await run_reconciler(stack, around, controller.reconciler, api, watch, work=controller.run)
    return controller.resync


def not_made(policies: PolicySet) -> dict[str, str]:
    """Warns if a policy sets a budget although the controller is off."""
    injections = [layers.written(layer.document).get("injections") or {} for layer in policies.layers]
    if any(settings.get(INJECTION, {}).get("budget") for settings in injections):
        return {NAME: f"a policy sets a budget, and without {OPTION} no job gets one"}
    return {}
