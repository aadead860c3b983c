"""A short run of all benchmarks. It tests that they work; the figures are meaningless."""

import os
from argparse import Namespace
from io import StringIO

import pytest

from tests.bench import added_latency, report, throughput
from tests.bench.__main__ import parse
from tests.bench.cluster import Size
from tests.bench.report import FULL, HOOKS, YARDSTICK
from tests.controlplane.assets import assets
from tests.controlplane.progress import Progress
from tests.support.paths import ROOT
from tests.support.rare import rare

assets()  # builds the programs before the time limit of a test applies
QUICK = parse(["--rounds", "1", "--connections", "4", "--without", "pod-security", "opa"])
QUICK.seconds = 0.3

pytestmark = pytest.mark.timeout(900)
two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="needs a core for the server and a core for the load generator"
)


@rare
@two_cores
def test_short_run_fills_the_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "CACHED", Size.of(1_000))
    progress = StringIO()
    rows = throughput.measure(Namespace(**{**vars(QUICK), "base": str(ROOT)}), Progress(progress))
    ours = [hook + suffix for suffix in ("", FULL, f" of {ROOT}") for hook in HOOKS]
    assert [(row.server, row.rate) for row in rows] == [
        (server, rate) for rate in throughput.RATES for server in (YARDSTICK, *ours)
    ]
    for row in rows:
        (sample,) = row.samples
        # A busy machine does not reach the rate; then the load generator omits requests.
        assert sample.error in ("", "not sent: the server is too slow for this rate")
        assert sample.requests > 0
        assert row.memory > 5
    assert throughput.tables(rows).count("\n") > 25
    assert not any("wrong" in problem for problem in report.problems(rows))
    assert "round 1" in progress.getvalue()


@rare
@two_cores
def test_api_server_calls_each_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added_latency, "EACH", 2)
    table = added_latency.measure(QUICK, Progress(StringIO()))
    hooks = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    assert hooks == ["none", "Go, allows everything", "validate", "mutate", "validate and mutate"]
