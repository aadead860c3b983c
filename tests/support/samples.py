"""Sample sizes of random and repeated tests: `make test` takes a sample, `make test-long` and CI take all."""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

FULL = os.environ.get("CI") == "true"
"""Set by most CI systems, and by `make test-long`."""

rare = pytest.mark.skipif(not FULL, reason="slow, and rarely breaks: `make test-long` has it")
"""For tests of code that few changes touch."""


def sample(usual: T, full: T) -> T:
    """The size during development, and the size before a merge."""
    return full if FULL else usual
