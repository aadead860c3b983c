"""The day that policies go by, for the service and for the commands that say what it would do."""

from datetime import UTC, date, datetime


def today() -> date:
    """The day (UTC) that decides whether an exemption has ended."""
    return datetime.now(UTC).date()
