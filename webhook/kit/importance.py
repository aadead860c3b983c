"""The severity of warnings. If there are too many warnings, the least severe ones are left out."""

from enum import IntEnum


class Importance(IntEnum):
    """The consequence for a job if its user ignores the warning."""

    FAILS = 1
    """A part of the job cannot start or certainly fails."""
    HARMS = 2
    """The job may fail, wait or run slowly, or differs from its user's intention."""
    MINOR = 3
    """The job works."""
