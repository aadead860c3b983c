"""In these tests, the audit handles changes without its usual delay."""

import pytest

from webhook.parts.standing_audit import standing


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "SETTLE", 0.0)
