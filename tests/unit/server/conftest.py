"""One service for many tests."""

import pytest

from tests.support.live_service import live


@pytest.fixture(scope="module")
def shared():
    """One service for all tests that leave only counts and log lines in it."""
    with live() as service:
        yield service


@pytest.fixture
def connection(shared):
    opened = shared.connect()
    yield opened
    opened.close()
