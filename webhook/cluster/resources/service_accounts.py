"""ServiceAccounts: that they are there."""

from dataclasses import dataclass

from webhook.cluster.resource import Wire, namespaced


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """What pods act as."""

    namespace: str
    name: str


def _record(found: Wire) -> ServiceAccount:
    return ServiceAccount(found.metadata.namespace, found.metadata.name)


SERVICE_ACCOUNTS = namespaced("serviceaccounts", "ServiceAccount", "v1", wire=Wire, record=_record, metadata_only=True)
