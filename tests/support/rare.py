"""Tests that only `make test-long` and CI run."""

import os

import pytest

FULL = os.environ.get("CI") == "true"
"""Set by most CI systems, and by `make test-long`."""

rare = pytest.mark.skipif(not FULL, reason="slow, and rarely breaks: `make test-long` has it")
"""For tests of code that few changes touch."""
