"""Records of the SCCs (OpenShift's SecurityContextConstraints) that an account may use in a namespace.

The API server has no such objects. The service makes a record from SubjectAccessReviews when it judges a job. A
snapshot file may contain the records.
"""

from typing import Final

import msgspec

from webhook.cluster.resource import Wire, namespaced
from webhook.cluster.resources.sccs import SecurityContextConstraints

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class SccGrants(msgspec.Struct, frozen=True):
    """The names of the SCCs that the account may use in the namespace."""

    namespace: str
    account: str
    constraints: frozenset[str]


class _SccGrants(Wire):
    constraints: tuple[str, ...] = ()


def _record(decoded: _SccGrants) -> SccGrants:
    return SccGrants(decoded.metadata.namespace, decoded.metadata.name, frozenset(decoded.constraints))


SCC_GRANTS = namespaced("sccgrants", "SccGrants", "policy.training.openshift.io/v1", wire=_SccGrants, record=_record)
"""The key is (namespace, user name of the account)."""


def service_account(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount."""
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def groups(account: str) -> tuple[str, ...]:
    """The groups of the ServiceAccount with the user name `account`."""
    namespace = account.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"


def lists(scc: SecurityContextConstraints, *accounts: str) -> bool:
    """Whether the SCC itself names one of these ServiceAccounts or their groups. Such an account needs no role."""
    names = {name for account in accounts for name in (account, *groups(account))}
    return not names.isdisjoint([*(scc.users or ()), *(scc.groups or ())])
