"""Services: their existence and owners."""

from webhook.cluster.owned import OwnedWire, owned
from webhook.cluster.resource import namespaced

SERVICES = namespaced("services", "Service", "v1", wire=OwnedWire, record=owned, metadata_only=True)
