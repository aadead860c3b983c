"""The time that policies go by, for the service and for the commands that say what it would do."""

from datetime import UTC, date, datetime


def now() -> datetime:
    """The moment, in UTC, that decides what a policy has begun to enforce."""
    return datetime.now(UTC)


def today() -> date:
    """The day (UTC) that decides whether an exemption has ended."""
    return now().date()
