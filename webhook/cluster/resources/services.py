"""Services, with only their metadata."""

from webhook.cluster.owned import OwnedWire, owned
from webhook.cluster.resource import namespaced

SERVICES = namespaced("services", "Service", "v1", wire=OwnedWire, record=owned, metadata_only=True)
