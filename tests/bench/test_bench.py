"""A short run of everything: what it measures here means nothing, that it measures does."""

import os
from argparse import Namespace
from io import StringIO

import pytest

from tests.bench.__main__ import RATES, measure
from tests.bench.report import HOOKS, YARDSTICK, of
from tests.controlplane.assets import assets
from tests.controlplane.progress import Progress
from tests.support.paths import ROOT

assets()  # builds, if nothing is built, before the time limit of a test counts


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is for the server, one for the load")
def test_a_short_run_fills_the_whole_table() -> None:
    progress = StringIO()
    found = measure(Namespace(seconds=0.2, rounds=1, connections=4, opa=False, base=str(ROOT)), Progress(progress))
    assert {(row.server, row.rate) for row in found.rows} == {
        (server, rate) for server in (YARDSTICK, *HOOKS, *(hook + of(str(ROOT)) for hook in HOOKS)) for rate in RATES
    }
    for row in found.rows:
        (sample,) = row.samples
        assert (sample.errors, sample.error) == (0, "")
        assert sample.requests > 0
        assert row.memory > 5
    assert {budget.what for budget in found.budgets} >= {"memory", "start", "validate: p99 at 1,000/s"}
    assert found.text(markdown=False).count("\n") > 15
    assert found.text(markdown=True).count("| --- |") == 3
    assert "round 1" in progress.getvalue()
