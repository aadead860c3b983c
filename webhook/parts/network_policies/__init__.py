"""A NetworkPolicy for every job, by the posture that its policy gives it or that it has chosen.

`wanted` makes the object: pure. `upkeep` creates the objects, puts them back and tells the user of what is in the way;
`serving` starts it for `serve --network-policies`. The settings, and what no NetworkPolicy filters, are the rule's
(`webhook.rules.network_policy`).
"""

from typing import Final

from webhook.kit.parts import ComponentRights, Part, RoleRule

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
