import pytest

from tests.support.live_service import live


@pytest.fixture(scope="module")
def shared():
    """One running service, shared by all tests that change nothing except metrics and log lines."""
    with live() as service:
        yield service


@pytest.fixture
def connection(shared):
    opened = shared.connect()
    yield opened
    opened.close()
