"""Starts the controller for NetworkPolicies."""

from collections.abc import Callable
from contextlib import AsyncExitStack

from webhook.client.watch import Watch
from webhook.controllers.reconciler import PacedClient
from webhook.parts.network_policies import NAME, OPTION, RULE
from webhook.policy import layers
from webhook.policy.in_force import PolicySet
from webhook.server.controllers import Surroundings, run_reconciler


async def start(stack: AsyncExitStack, around: Surroundings) -> Callable[[], None] | None:
    if OPTION not in around.settings.options:
        around.readiness.concerns_of(lambda: not_made(around.policies()))
        return None
    from webhook.parts.network_policies.upkeep import NETWORK_POLICIES, NetworkPolicies  # noqa: PLC0415

    link, log = around.link, around.telemetry.log
    api, watch = PacedClient(link.api), Watch(NETWORK_POLICIES, link.connection, log=log)
    controller = NetworkPolicies(api=api, view=link.view, watch=watch, policies=around.policies, log=log)
    await run_reconciler(stack, around, controller.reconciler, api, watch, work=controller.run)
    return controller.resync


def not_made(policies: PolicySet) -> dict[str, str]:
    """Warns if a policy sets or offers a posture although the controller is off."""
    rules = [layers.written(layer.document).get("rules") or {} for layer in policies.layers]
    of_rule = [settings.get(RULE, {}) for settings in rules]
    if any({settings.get("posture", "none"), *settings.get("choices", ())} != {"none"} for settings in of_rule):
        return {NAME: "a policy sets or offers a posture, and without --network-policies no job gets a NetworkPolicy"}
    return {}
