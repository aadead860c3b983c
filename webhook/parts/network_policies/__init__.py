"""A NetworkPolicy for every job. The MPIJobPolicy or the job's annotation sets the posture, a degree of isolation.

`job_policy` computes the object, and `upkeep` creates and restores the objects. The rule `network-policy` has the
settings, and explains which traffic no NetworkPolicy filters.
"""

from typing import Final

from webhook.kit.optional_parts import ComponentRights, Part, RoleRule

NAME: Final = "network-policies"
RULE: Final = "network-policy"
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
