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
"""Bytes of a file that is checked: memory."""
MAX_KINDS_LISTED: Final = 3
"""Of objects that are not known; without a cluster more are called a cluster."""
MAX_NAMES_LISTED: Final = 5
"""Of the jobs that a namespace has, where none is called as the one that is not there."""
MAX_VERDICTS_IN_FULL: Final = 3
"""With more jobs, an admitted one is a line, without what was injected."""
MAX_SCHEMA_FAULTS: Final = 50
"""Faults against the schema that are reported for a job."""
