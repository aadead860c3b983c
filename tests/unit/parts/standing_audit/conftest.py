"""A cluster without jobs. The audit handles changes without its usual delay."""

import pytest

from tests.support.kept_objects import KeptObjects
from webhook.parts.standing_audit import standing


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "SETTLE", 0.0)


@pytest.fixture
def cluster() -> KeptObjects:
    objects = KeptObjects()
    objects.put("/api/v1/namespaces/team-a", {"metadata": {"labels": {"tier": "gold"}}})
    return objects
