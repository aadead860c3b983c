"""What tests of the ledger ask for."""

import pytest


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits between two looks."""
    monkeypatch.setattr("webhook.companions.reservations.ledger.PAUSE", 0)
