"""Severity of warnings: the worst of several comes first, and the least severe are cut."""

from enum import IntEnum


class Importance(IntEnum):
    """The consequence for a job if its user ignores the warning, the worst first. Rules and injections declare it."""

    FAILS = 1
    """The job cannot start or certainly fails, or a part of it does."""
    HARMS = 2
    """It may fail, wait or run slowly, or differs from what its user intended."""
    MINOR = 3
    """It works."""
