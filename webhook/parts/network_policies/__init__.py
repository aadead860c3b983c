"""A NetworkPolicy for every job, by the posture of its policy or the one that the job has chosen.

`wanted` makes the object: pure. `upkeep` creates and restores the objects and reports obstacles to the user; `serving`
starts it for `serve --network-policies`. The rule (`webhook.rules.network_policy`) has the settings, and explains what
no NetworkPolicy filters.
"""

from typing import Final

from webhook.kit.optional_parts import ComponentRights, Part, RoleRule

NAME: Final = "network-policies"
"""The controller's name in metrics, logs and concerns."""
RULE: Final = "network-policy"
"""The rule that has the settings."""
OPTION: Final = "--network-policies"

PART: Final = Part(
    options={OPTION: "Make a NetworkPolicy for each job; needs the right to."},
    start="webhook.parts.network_policies.serving:start",
    rights=(
        ComponentRights(
            "network-policies",
            OPTION,
            "jobs get no NetworkPolicy, or one that is not put back",
            (
                RoleRule("networking.k8s.io", ("networkpolicies",), ("get", "list", "watch", "create", "patch")),
                RoleRule("", ("events",), ("create",)),
            ),
        ),
    ),
)
