"""What tests of the ledger ask for."""

import pytest

LIMITS = "webhook.controllers.reservations.limits"


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds follow each other at once."""
    monkeypatch.setattr(f"{LIMITS}.MAX_PAUSE_SECONDS", 0)
    monkeypatch.setattr(f"{LIMITS}.PODS_COUNTED_SECONDS", 0)
