"""Clocks that differ make certificates invalid."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import Facts

CLOCK_SKEW: Final = DiagnosisKind("clock-skew", Severity.WARNING)
MOST: Final = timedelta(seconds=30)


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Compare the clock of the API server with that of this machine; those of the nodes cannot be seen."""
    if facts.server_time is None:
        yield not_known("the clock of the API server", "its answers have no date")
        return
    apart = facts.now - facts.server_time
    if abs(apart) > MOST:
        seconds = f"{abs(apart).total_seconds():,.0f} s {'behind' if apart > timedelta(0) else 'ahead of'}"
        yield CLOCK_SKEW(
            f"the clock of the API server is {seconds} this machine's: one of them is wrong",
            fix="see to NTP on the control plane (timedatectl); certificates begin an hour in the past, no more",
        )
    yield ok("the API server's agrees with this machine's (those of the nodes cannot be seen)")
