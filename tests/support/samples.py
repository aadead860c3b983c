"""How much of what is drawn or repeated is tried: `make test` takes a sample, `make test-long` and CI all of it."""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

FULL = os.environ.get("CI") == "true"
"""As most CI systems set it, and `make test-long`."""

rare = pytest.mark.skipif(not FULL, reason="slow, and rarely breaks: `make test-long` has it")
"""For tests of what few changes touch."""


def sample(usual: T, full: T) -> T:
    """How much is enough for a change on the way, and how much before it is let in."""
    return full if FULL else usual
