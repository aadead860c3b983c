"""ServiceAccounts: that they are there."""

import msgspec

from webhook.cluster.resource import Wire, namespaced


class ServiceAccount(msgspec.Struct, frozen=True):
    """What pods act as."""

    namespace: str
    name: str


def _record(found: Wire) -> ServiceAccount:
    return ServiceAccount(found.metadata.namespace, found.metadata.name)


SERVICE_ACCOUNTS = namespaced("serviceaccounts", "ServiceAccount", "v1", wire=Wire, record=_record, metadata_only=True)
