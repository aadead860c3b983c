"""Fixtures for tests of the ledger, which stores reservations of quota."""

import pytest

LIMITS = "webhook.controllers.reservations.limits"


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the pauses between the rounds of the ledger."""
    monkeypatch.setattr(f"{LIMITS}.MAX_PAUSE_SECONDS", 0)
    monkeypatch.setattr(f"{LIMITS}.PODS_COUNTED_SECONDS", 0)
