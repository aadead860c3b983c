"""Limits of `why`."""

from typing import Final

MAX_JOBS_READ_AT_ONCE: Final = 8
"""Jobs that `why` reads concurrently, with several calls to the API server each."""
MAX_OBJECTS_READ: Final = 12
"""For one job, `why` reads the Events of this many pods and this many volume claims: many pods usually have the same
problem."""
MAX_LOGS_READ: Final = 2
"""For one job, `why` reads at most this many logs of failed containers, and at most this many logs of workers."""
MAX_EVENTS_SHOWN: Final = 5
"""Warning Events that `why` prints for one job."""
MAX_TEXT_CHARACTERS: Final = 8192
"""Characters that `why` reads from a text in the cluster: the time for matching patterns is quadratic in the length."""
MAX_CAUSE_CHARACTERS: Final = 1024
"""Characters of a cause's text. The message of an Event has the same limit in Kubernetes."""
MAX_LINE_CHARACTERS: Final = 300
"""Characters of a cause in the summary line."""
MAX_REJECTION_CHARACTERS: Final = 1024
"""Characters of a rejection that patterns search: the time is quadratic in the length."""
MAX_LOG_LINE_CHARACTERS: Final = 500
"""Characters of a log line that patterns search."""
MAX_LINES_WITH_ERRORS: Final = 10
"""`why` looks for an error in this many last lines of a program's log: the program survived earlier errors."""
MAX_AMOUNT_DIGITS: Final = 9
"""Digits of a device count; `why` ignores a longer number."""
