"""The time that policies use."""

from datetime import UTC, date, datetime


def now() -> datetime:
    return datetime.now(UTC)


def today() -> date:
    """In UTC, like the dates on which exemptions end."""
    return now().date()
