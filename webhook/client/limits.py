"""Limits of requests to the API server."""

from typing import Final

MAX_CONNECT_SECONDS: Final = 10
"""Seconds to connect to the API server."""
MAX_PAGE_SECONDS: Final = 60
"""Seconds for a page of a list, as in the API server."""
MAX_LINE_BYTES: Final = 8 * 2**20
"""Bytes of a watch event. An object may have 1.5 MiB in etcd, and JSON writes some characters as six bytes."""
MAX_PAGE_BYTES: Final = 16 * 2**20
"""Bytes of a page of a list. A larger page is requested again with fewer objects."""
MAX_ERROR_BYTES: Final = 64 * 2**10
"""Bytes that are read of an error answer."""
MAX_PAGES: Final = 50_000
"""Pages of a list. The API server keeps the state of a list for a few minutes. More pages would take longer."""
MAX_OBJECTS_AT_STRETCH: Final = 50
"""Objects that are decoded without a pause. Reviews wait until the pause."""
MAX_BYTES_AT_STRETCH: Final = 512 * 2**10
"""Bytes that are decoded without a pause. Reviews wait until the pause."""
OBJECTS_PER_PAGE: Final = 200
"""Objects of a page."""
SNAPSHOT_OBJECTS_PER_PAGE: Final = 500
"""Objects of a page when a command reads a whole cluster."""
MAX_READ_ATTEMPTS: Final = 3
"""Attempts to read a list when a command reads a whole cluster."""
MAX_CALL_SECONDS: Final = 10.0
"""Seconds for a request."""
MAX_EVENT_CHARACTERS: Final = 1000
"""Characters of an Event's message. The API server accepts 1024."""
SCC_GRANTS_SECONDS: Final = 10.0
"""Seconds for which the SCCs of an account are cached. Both reviews of a new job need the SCCs."""
MAX_SCC_GRANTS: Final = 1_000
"""Accounts whose SCCs are cached."""
