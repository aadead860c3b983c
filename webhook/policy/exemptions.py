"""The exemptions in a policy document. `webhook.admission.validate.exemptions` applies them to a job."""

from collections.abc import Container, Set
from datetime import date
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from webhook.kit.custom_rules import PREFIX, is_custom_id
from webhook.kit.settings import Settings

EVERY_RULE = "*"
REQUIRED_INJECTION = "required-injection"
"""Not the id of a rule. An exemption with this id exempts jobs from required injections."""
# The annotations that request an exemption. The user needs the RBAC verb `exempt` on the resource `rules`.
EXEMPT = "training.openshift.io/exempt"
REASON = "training.openshift.io/exempt-reason"

SERVICE_ACCOUNT = "system:serviceaccount:"


def _namespaced(accounts: tuple[str, ...]) -> tuple[str, ...]:
    for account in accounts:
        namespace, slash, name = account.partition("/")
        if not (namespace and slash and name) or "/" in name:
            raise ValueError(f'"{account}" is not NAMESPACE/NAME')
    return accounts


def names_rule(named: Container[str], rule_id: str) -> bool:
    """Whether an exemption with these `named` rules includes the rule."""
    return rule_id in named or EVERY_RULE in named or (is_custom_id(rule_id) and PREFIX in named)


class Exemption(Settings):
    """An exemption from `rules`, for jobs that match every field that is set."""

    rules: tuple[str, ...] = Field(
        min_length=1,
        description="Ids of rules, for example gpus. custom/ID means one custom rule, custom means all custom rules,"
        ' and "*" means all rules.',
    )
    namespaces: tuple[str, ...] = Field((), description="Names of namespaces; empty for all that the document covers.")
    users: tuple[str, ...] = Field((), description="User names, as the API server sees them.")
    groups: tuple[str, ...] = Field((), description="Group names.")
    service_accounts: Annotated[tuple[str, ...], AfterValidator(_namespaced)] = Field(
        (), description="Service accounts, as NAMESPACE/NAME."
    )
    expires: date | None = Field(None, description="The last day (UTC) of the exemption; absent for no end.")
    reason: str = Field(min_length=1, description="The reason, shown to users and in the audit log.")

    @model_validator(mode="after")
    def _narrowed(self) -> "Exemption":
        if not (self.namespaces or self.users or self.groups or self.service_accounts):
            raise ValueError(
                "names no namespaces, users, groups or serviceAccounts: set the rule's action to off instead"
            )
        return self

    def concerns(self, *, namespace: str, username: str, groups: Set[str]) -> bool:
        """Whether the exemption applies to a request, without regard to `rules` and `expires`."""
        if self.namespaces and namespace not in self.namespaces:
            return False
        if not (self.users or self.groups or self.service_accounts):
            return True
        accounts = (SERVICE_ACCOUNT + account.replace("/", ":") for account in self.service_accounts)
        return username in self.users or username in accounts or any(group in groups for group in self.groups)

    def expired(self, today: date) -> bool:
        return self.expires is not None and self.expires < today


def requested_rules(annotations: dict[str, str]) -> tuple[str, ...]:
    """The ids of the rules in a job's exemption request."""
    return tuple(part.strip() for part in annotations.get(EXEMPT, "").split(",") if part.strip())
