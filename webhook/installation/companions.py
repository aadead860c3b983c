"""The optional controllers of `serve`, and the rights of each.

Each has a component in manifests/components that adds the option and the rights. Without it the service has neither.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.api import trainer
from webhook.client.access_reviews import Right


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Some rights in all namespaces."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompanionRights:
    """An optional controller's component, option and rights."""

    component: str
    """Its name in manifests/components, and the name of its ClusterRole."""
    option: str
    """The option of `serve` that switches it on."""
    without: str
    """What happens without the rights."""
    rules: tuple[RoleRule, ...]

    def rights(self) -> Iterator[Right]:
        for rule in self.rules:
            yield from (Right(verb, rule.group, resource) for resource in rule.resources for verb in rule.verbs)


KEY_REMOVAL: Final = CompanionRights(
    "key-removal", "--remove-keys", "keys of ended jobs stay", (RoleRule("", ("secrets",), ("delete",)),)
)

DEADLINE_EVENTS: Final = CompanionRights(
    "deadline-events",
    "--deadline-events",
    "nobody is told when a job's time is nearly over",
    (RoleRule("", ("events",), ("create",)),),
)

NETWORK_POLICIES: Final = CompanionRights(
    "network-policies",
    "--network-policies",
    "jobs get no NetworkPolicy, or one that is not put back",
    (
        RoleRule("networking.k8s.io", ("networkpolicies",), ("get", "list", "watch", "create", "patch")),
        RoleRule("", ("events",), ("create",)),
    ),
)

_REPORT_VERBS: Final = ("list", "watch", "create", "patch", "delete")
AUDIT_REPORTS: Final = CompanionRights(
    "audit-reports",
    "--audit-reports",
    "what the audit finds is not written down",
    (
        RoleRule("openreports.io", ("reports",), _REPORT_VERBS),
        RoleRule("wgpolicyk8s.io", ("policyreports",), _REPORT_VERBS),
    ),
)

TRAINER: Final = CompanionRights(
    "trainer",
    "--trainer",
    "TrainJobs are admitted without a check, as nothing is known of their runtimes",
    (RoleRule(trainer.GROUP, ("clustertrainingruntimes", "trainingruntimes", "trainjobs"), ("get", "list", "watch")),),
)

COMPANIONS: Final = (KEY_REMOVAL, DEADLINE_EVENTS, NETWORK_POLICIES, AUDIT_REPORTS, TRAINER)
