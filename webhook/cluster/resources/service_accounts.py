"""ServiceAccounts."""

import msgspec

from webhook.cluster.resource import Wire, namespaced


class ServiceAccount(msgspec.Struct, frozen=True, gc=False):
    """A service account."""

    namespace: str
    name: str
    token: bool = True
    """Whether pods get a token for the API server by default."""


class _ServiceAccount(Wire, rename="camel", omit_defaults=True):
    automount_service_account_token: bool | None = None


def _record(decoded: _ServiceAccount) -> ServiceAccount:
    token = decoded.automount_service_account_token is not False
    return ServiceAccount(decoded.metadata.namespace, decoded.metadata.name, token)


SERVICE_ACCOUNTS = namespaced("serviceaccounts", "ServiceAccount", "v1", wire=_ServiceAccount, record=_record)
