"""A NetworkPolicy for every job, with the posture from the policy or from the job's annotation.

`wanted` computes the object. `upkeep` creates and restores the objects and reports problems to the user. `serving`
starts the controller for `serve --network-policies`. The rule `webhook.rules.network_policy` has the settings, and
explains which traffic no NetworkPolicy filters.
"""

from typing import Final

from webhook.kit.optional_parts import ComponentRights, Part, RoleRule

NAME: Final = "network-policies"
"""The controller's name in metrics, logs and concerns."""
RULE: Final = "network-policy"
"""The rule that has the settings."""
OPTION: Final = "--network-policies"

PART: Final = Part(
    options={OPTION: "Make a NetworkPolicy for each job; needs permission to create them."},
    start="webhook.parts.network_policies.serving:start",
    rights=(
        ComponentRights(
            "network-policies",
            OPTION,
            "jobs get no NetworkPolicy, or a changed NetworkPolicy is not restored",
            (
                RoleRule("networking.k8s.io", ("networkpolicies",), ("get", "list", "watch", "create", "patch")),
                RoleRule("", ("events",), ("create",)),
            ),
        ),
    ),
)
