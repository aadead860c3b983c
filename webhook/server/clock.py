"""The time that policies go by, for the service and for the commands that say what it would do."""

from datetime import UTC, date, datetime


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def today() -> date:
    """The day (UTC) that decides whether an exemption has ended."""
    return now().date()
