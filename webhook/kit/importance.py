"""Severity of warnings. The most severe warning comes first, and the least severe ones are cut."""

from enum import IntEnum


class Importance(IntEnum):
    """The consequence for a job if its user ignores the warning. Rules and injections declare it."""

    FAILS = 1
    """The job, or a part of it, cannot start or certainly fails."""
    HARMS = 2
    """The job may fail, wait or run slowly, or differs from its user's intention."""
    MINOR = 3
    """The job works."""
