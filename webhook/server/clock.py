"""The time that policies use."""

from datetime import UTC, date, datetime


def now() -> datetime:
    return datetime.now(UTC)


def today() -> date:
    """The date in UTC. The dates on which exemptions end are in UTC too."""
    return now().date()
