"""Limits of the commands."""

from typing import Final

MAX_NAMES_IN_ROW: Final = 5
"""Names of jobs in a row of a Markdown table."""
MAX_NAMES_ON_LINE: Final = 10
"""Names of jobs on a line of a replay's report."""
MAX_VALUE_CHARACTERS: Final = 300
"""Characters of a value in the report of a policy test."""
MAX_GIT_SECONDS: Final = 30
"""Seconds that git may take to read a revision."""
MAX_FILE_BYTES: Final = 64 * 2**20
"""Bytes of a checked file, to limit memory."""
MAX_KINDS_LISTED: Final = 3
"""Kinds of unknown objects that are listed; without a cluster, more are summed up as "a cluster"."""
MAX_NAMES_LISTED: Final = 5
"""Names of jobs listed for a namespace, if none is similar to the missing one."""
MAX_VERDICTS_IN_FULL: Final = 3
"""With more jobs, only the number of jobs without findings is shown, and no injections."""
MAX_SCHEMA_FAULTS: Final = 50
"""Faults against the schema that are reported for a job."""
