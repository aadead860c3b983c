"""Marks tests that only `make test-long` and CI run."""

import os

import pytest

FULL = os.environ.get("CI") == "true"
"""Whether CI=true is set, as in most CI systems and by `make test-long`."""

rare = pytest.mark.skipif(not FULL, reason="slow and rarely fails: only in `make test-long`")
"""A mark for slow tests of code that rarely changes."""
