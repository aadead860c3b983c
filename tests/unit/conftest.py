"""For the tests that need no cluster."""

import pytest

from webhook.api import written


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """What other tests have had read: their specs have the operator's defaults, and rules that need not be asked."""
    written.known.clear()
