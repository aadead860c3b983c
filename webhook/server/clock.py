"""The time that policies use, for the service and for the commands that predict its answers."""

from datetime import UTC, date, datetime


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def today() -> date:
    """The date in UTC. Exemptions end on a date in UTC."""
    return now().date()
