"""Limits of `why`."""

from typing import Final

MAX_JOBS_READ_AT_ONCE: Final = 8
"""Jobs that `why` reads at once: each takes some calls."""
MAX_OBJECTS_READ: Final = 12
"""Objects of a job that `why` reads one by one: thousands of pods say the same."""
MAX_LOGS_READ: Final = 2
"""Logs of containers that failed, and of workers that run, that `why` reads of a job."""
MAX_EVENTS_SHOWN: Final = 5
"""Warning Events of a job that `why` shows."""
MAX_TEXT_CHARACTERS: Final = 8192
"""Characters of a text of the cluster that `why` reads: patterns take the square of its length."""
MAX_CAUSE_CHARACTERS: Final = 1024
"""Characters of a cause, as of an Event's message."""
MAX_LINE_CHARACTERS: Final = 300
"""Characters of a cause on one line."""
MAX_REJECTION_CHARACTERS: Final = 1024
"""Characters of a rejection that patterns search, which takes the square of its length."""
MAX_LOG_LINE_CHARACTERS: Final = 500
"""Characters of a log line that patterns search."""
MAX_LINES_WITH_ERRORS: Final = 10
"""Last lines of a program's log in which an error may be the cause: the program survived earlier errors."""
MAX_AMOUNT_DIGITS: Final = 9
"""Digits of a number of devices that `why` adds up."""
