"""Limits of calls of the API server."""

from typing import Final

MAX_CONNECT_SECONDS: Final = 10
"""Seconds to connect to the API server."""
MAX_PAGE_SECONDS: Final = 60
"""Seconds for a page of a list, which is the API server's own limit."""
MAX_LINE_BYTES: Final = 8 * 2**20
"""Bytes of a watch event: objects have 1.5 MiB in etcd, and JSON writes some characters as six bytes."""
MAX_PAGE_BYTES: Final = 16 * 2**20
"""Bytes of a page of a list. If a page is larger, fewer objects are listed at a time."""
MAX_ERROR_BYTES: Final = 64 * 2**10
"""Bytes of an error of the API server that are read."""
MAX_PAGES: Final = 50_000
"""Pages of a list. An API server keeps the state of a list for minutes, not for that many pages."""
MAX_OBJECTS_AT_STRETCH: Final = 50
"""Objects of a page that are decoded without a pause, while reviews wait."""
MAX_BYTES_AT_STRETCH: Final = 512 * 2**10
"""Bytes of a page that are decoded without a pause, while reviews wait."""
OBJECTS_PER_PAGE: Final = 200
"""Objects of a page."""
SNAPSHOT_OBJECTS_PER_PAGE: Final = 500
"""Objects of a page when a whole cluster is read."""
MAX_READ_ATTEMPTS: Final = 3
"""Attempts to read a list of a cluster."""
MAX_CALL_SECONDS: Final = 10.0
"""Seconds for a call of the API server."""
MAX_EVENT_CHARACTERS: Final = 1000
"""Characters of an Event's message: the API server takes 1024."""
SCC_GRANTS_SECONDS: Final = 10.0
"""Seconds for which the SCCs that an account may use are cached: the reviews of a new job need them at once."""
MAX_SCC_GRANTS: Final = 1_000
"""Accounts of which these are cached."""
