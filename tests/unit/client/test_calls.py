"""The time of the API server, which is computed from the dates of its answers."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from webhook.client.calls import Client


@pytest.mark.parametrize("skew", [-31, 0, 31, 86_400])
def test_time_comes_from_the_api_server(monkeypatch: pytest.MonkeyPatch, skew: float) -> None:
    ours = 1_700_000_000.25
    monkeypatch.setattr(time, "time", lambda: ours)
    monkeypatch.setattr(time, "monotonic", lambda: 1024.0)
    anything: Any = None
    client = Client(anything, "https://api", anything)
    assert client.now() == ours  # before the first answer
    client._adjust_clock(datetime.fromtimestamp(int(ours + skew), UTC), sent=1023.9)
    assert abs(client.now() - (ours + skew)) <= 1
    before = client.now()
    # dates have whole seconds, so the time must not change
    client._adjust_clock(datetime.fromtimestamp(int(before), UTC), sent=1023.9)
    assert client.now() == before


def test_slow_answer_does_not_set_the_clock_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise replicas under load would have different times."""
    monkeypatch.setattr(time, "monotonic", lambda: 1024.0)
    anything: Any = None
    client = Client(anything, "https://api", anything)
    client._adjust_clock(datetime.fromtimestamp(1_700_000_000, UTC), sent=1024.0)
    before = client.now()
    client._adjust_clock(datetime.fromtimestamp(1_699_999_996, UTC), sent=1019.0)
    assert client.now() == before
    client._adjust_clock(datetime.fromtimestamp(1_699_999_990, UTC), sent=1019.0)
    assert client.now() == 1_699_999_996, "the clock is set back to the latest possible time"


def test_changed_wall_clock_does_not_change_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    anything: Any = None
    client = Client(anything, "https://api", anything)
    before = client.now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= client.now() - before < 3600
