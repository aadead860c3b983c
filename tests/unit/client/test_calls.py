"""The time of the API server, which is computed from the dates of its answers."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from webhook.client.calls import Client


def client() -> Client:
    """A client that sends no request."""
    anything: Any = None
    return Client(anything, "https://api", anything)


@pytest.mark.parametrize("skew", [-31, 0, 31, 86_400])
def test_time_comes_from_the_api_server(monkeypatch: pytest.MonkeyPatch, skew: float) -> None:
    ours = 1_700_000_000.25
    monkeypatch.setattr(time, "time", lambda: ours)
    monkeypatch.setattr(time, "monotonic", lambda: 1024.0)
    api = client()
    assert api.now() == ours  # before the first answer
    api._adjust_clock(datetime.fromtimestamp(int(ours + skew), UTC), sent=1023.9)
    assert abs(api.now() - (ours + skew)) <= 1
    before = api.now()
    # This date is the current time in whole seconds, so it must not change the time.
    api._adjust_clock(datetime.fromtimestamp(int(before), UTC), sent=1023.9)
    assert api.now() == before


def test_slow_answer_does_not_set_the_clock_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise replicas under load would have different times."""
    monkeypatch.setattr(time, "monotonic", lambda: 1024.0)
    api = client()
    api._adjust_clock(datetime.fromtimestamp(1_700_000_000, UTC), sent=1024.0)
    before = api.now()
    api._adjust_clock(datetime.fromtimestamp(1_699_999_996, UTC), sent=1019.0)
    assert api.now() == before
    api._adjust_clock(datetime.fromtimestamp(1_699_999_990, UTC), sent=1019.0)
    assert api.now() == 1_699_999_996, "the delay does not explain this date, so the clock is set back"


def test_changed_wall_clock_does_not_change_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    api = client()
    before = api.now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= api.now() - before < 3600
