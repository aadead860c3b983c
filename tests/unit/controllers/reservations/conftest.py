"""Fixtures for tests of the ledger."""

import pytest

LIMITS = "webhook.controllers.reservations.limits"


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between rounds."""
    monkeypatch.setattr(f"{LIMITS}.MAX_PAUSE_SECONDS", 0)
    monkeypatch.setattr(f"{LIMITS}.PODS_COUNTED_SECONDS", 0)
