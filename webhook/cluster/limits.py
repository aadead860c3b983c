"""Limits of what is kept of the cluster."""

from typing import Final

MAX_LEDGER_BYTES: Final = 250_000
"""Bytes of the reservations of a namespace: an object's annotations have room for 256 KiB."""
MAX_RESERVATION_BYTES: Final = 10_000
"""Bytes of the reservation of one job: it must leave space for others."""
MAX_ANNOTATION_CHARACTERS: Final = 256
"""Stored characters of a Namespace's annotation: some tools keep whole objects in theirs."""
MAX_LIMIT_RANGE_ENTRIES: Final = 500
"""Entries of the LimitRanges of a namespace: each review goes through them."""
MAX_CONFIG_MAP_KEYS_CHARACTERS: Final = 1000
"""Characters of the keys of a ConfigMap that are kept: there may be tens of thousands of ConfigMaps."""
MAX_NETWORK_POLICY_PEERS: Final = 200
"""Selectors of the NetworkPolicies of a namespace: each review goes through them."""
