"""A PodDisruptionBudget for every running job, if the policy sets one.

`upkeep` creates and updates the objects. The setting is `budget` of the injection `no-disruption`.
"""

from typing import Final

from webhook.kit.optional_parts import ComponentRights, Part, RoleRule

NAME: Final = "disruption-budgets"
INJECTION: Final = "no-disruption"
OPTION: Final = "--disruption-budgets"

PART: Final = Part(
    options={OPTION: "Make a PodDisruptionBudget for each running job; needs permission to create them."},
    start="webhook.parts.disruption_budgets.serving:start",
    rights=(
        ComponentRights(
            NAME,
            OPTION,
            "drains evict the pods of running jobs, or wait for jobs that have ended",
            (
                RoleRule("policy", ("poddisruptionbudgets",), ("get", "list", "watch", "create", "patch")),
                RoleRule("", ("events",), ("create",)),
            ),
        ),
    ),
)
