"""Limits of the server: connections, requests and log lines."""

from typing import Final

MAX_RULES_WITH_FAULTS: Final = 100
"""Custom rules whose faults are logged and counted by name."""
MAX_BODY_BYTES: Final = 7 * 1024**2
"""Bytes of a body: two objects of 3 MB and the fields around them, as in controller-runtime
(`pkg/webhook/admission/http.go`).
"""
MAX_QUOTED_CHARACTERS: Final = 1000
"""Characters of a bad request that the reply quotes."""
MAX_TARGET_CHARACTERS: Final = 2048
"""Characters of a request's path and query: far more than an API server sends."""
MAX_DURATION_CHARACTERS: Final = 32
"""Characters of the `timeout` parameter: the pattern that reads it backtracks."""
MAX_HEAD_BYTES: Final = 16 * 1024
"""Bytes of a request's head, to limit the memory of a connection that sends no review."""
MAX_HEAD_SECONDS: Final = 10.0
"""Seconds in which a head must arrive: a slow client occupies a connection."""
MAX_UNSENT_BYTES: Final = 64 * 1024
"""Bytes of unread replies, to limit the memory of a connection."""
MIN_LARGE_BODY_BYTES: Final = 64 * 2**10
"""A body of more bytes is large. Smaller bodies are limited by the number of connections."""
MAX_SEND_SECONDS: Final = 10.0
"""Seconds in which a client must read a large reply."""
MAX_LARGE_BODIES_BYTES: Final = 96 * 2**20
"""Bytes of all large bodies at the same time, to limit memory."""
MAX_HANDSHAKE_SECONDS: Final = 5.0
"""Seconds in which a TLS handshake must end."""
MAX_CONNECTIONS: Final = 1024
"""Connections to the review port, to limit memory and file descriptors."""
MAX_OPS_CONNECTIONS: Final = 64
"""Connections to the port with health and metrics."""
MAX_LOGGED_REFUSALS: Final = 20
"""Different bad requests that are logged between two summaries: a flood of requests must not flood the log."""
MAX_LOGGED_CHARACTERS: Final = 256
"""Characters of a name in a log line: identity providers do not limit user names."""
MAX_LOGGED_FRAMES: Final = 30
"""Frames of a traceback in a log line."""
MAX_WAITING_LINES: Final = 10_000
"""Log lines that wait for a slow reader. If more lines wait, the oldest are dropped."""
MAX_LOGGED_FAILURES: Final = 100
"""Different failures of plug-ins that are logged, each once."""
JOBS_PER_PAGE: Final = 200
"""Stored jobs per list request for the impact of a policy, to limit memory."""
MAX_REPLAYS: Final = 2
"""Policy changes whose impact is computed at the same time: each computation reads every job."""
MAX_NAMESPACE_LABELS: Final = 500
"""Maximum number of namespaces in metrics. Each namespace has its own time series."""
MAX_USER_SERIES: Final = 500
"""Time series of GPUs by user. Each combination of namespace, user and resource has one."""
