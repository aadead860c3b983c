"""ConfigMaps: that they are there and whose they are, never what they hold."""

from webhook.cluster.owned import OwnedWire, owned
from webhook.cluster.resource import namespaced

CONFIG_MAPS = namespaced("configmaps", "ConfigMap", "v1", wire=OwnedWire, record=owned, metadata_only=True)
