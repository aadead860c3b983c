"""Marks tests that only `make test-long` and CI run."""

import os

import pytest

FULL = os.environ.get("CI") == "true"
"""Whether the variable CI is "true". Most CI systems and `make test-long` set it."""

rare = pytest.mark.skipif(not FULL, reason="slow and rarely fails: only in `make test-long`")
"""A mark for slow tests of code that rarely changes."""
