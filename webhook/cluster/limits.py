"""Limits on the cached data of the cluster."""

from typing import Final

MAX_LEDGER_BYTES: Final = 250_000
"""Bytes of a namespace's reservations. The annotations of an object may have 256 KiB."""
MAX_RESERVATION_BYTES: Final = 10_000
"""Bytes of a job's reservation. The reservations of other jobs need room too."""
MAX_ANNOTATION_CHARACTERS: Final = 256
"""Characters of a cached annotation. Some tools store whole objects in annotations."""
MAX_LIMIT_RANGE_ENTRIES: Final = 500
"""Limits and defaults in a namespace's LimitRanges. Each review compares them with each container."""
MAX_CONFIG_MAP_KEYS_CHARACTERS: Final = 1000
"""Characters of a ConfigMap's keys. A cluster may have tens of thousands of ConfigMaps."""
MAX_NETWORK_POLICY_PEERS: Final = 200
"""Selectors of a namespace's NetworkPolicies. Each review reads all of them."""
