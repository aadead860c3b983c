"""How much a warning matters: of several the worst is said first, and where they are cut the least goes."""

from enum import IntEnum


class Importance(IntEnum):
    """What becomes of a job whose user reads over the warning, the worst first. Rules and injections declare it."""

    FAILS = 1
    """The job cannot start or certainly fails, or a part of it does."""
    HARMS = 2
    """It may fail, wait or run slowly, or is not what its user asked for."""
    MINOR = 3
    """It works."""
