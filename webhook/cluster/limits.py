"""Limits on the cached data of the cluster."""

from typing import Final

MAX_LEDGER_BYTES: Final = 250_000
"""Bytes of a namespace's reservations: an object's annotations may have 256 KiB."""
MAX_RESERVATION_BYTES: Final = 10_000
"""Bytes of a job's reservation: it must leave room for reservations of other jobs."""
MAX_ANNOTATION_CHARACTERS: Final = 256
"""Characters of a cached annotation of a Namespace or a job: some tools store whole objects in annotations."""
MAX_LIMIT_RANGE_ENTRIES: Final = 500
"""Entries in a namespace's LimitRanges: each review reads all of them."""
MAX_CONFIG_MAP_KEYS_CHARACTERS: Final = 1000
"""Characters of a ConfigMap's keys that are cached: there may be tens of thousands of ConfigMaps."""
MAX_NETWORK_POLICY_PEERS: Final = 200
"""Selectors of a namespace's NetworkPolicies: each review reads all of them."""
