"""Limits of the commands."""

from typing import Final

MAX_NAMES_ON_LINE: Final = 10
"""Names of jobs on a line of a replay's report."""
MAX_VALUE_CHARACTERS: Final = 300
"""Characters of a value in the report of a policy test."""
MAX_FILE_BYTES: Final = 64 * 2**20
"""Bytes of a checked file, to limit memory."""
MAX_KINDS_LISTED: Final = 3
"""Unknown kinds that a message lists. Without a cluster, the words "a cluster" replace a longer list."""
MAX_NAMES_LISTED: Final = 5
"""Names of jobs listed when a job does not exist and no name is similar."""
MAX_VERDICTS_IN_FULL: Final = 3
"""Verdicts that are printed in full. If there are more, injections and jobs without findings are not printed."""
MAX_SCHEMA_FAULTS: Final = 50
"""Schema faults that are reported for a job."""
