"""A cluster without jobs, whose changes are processed at once."""

import pytest

from tests.support.kept_objects import KeptObjects
from webhook.parts.standing_audit import standing


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "SETTLE", 0.0)


@pytest.fixture
def cluster() -> KeptObjects:
    found = KeptObjects()
    found.put("/api/v1/namespaces/team-a", {"metadata": {"labels": {"tier": "gold"}}})
    return found
