"""A short run of everything: what it measures here means nothing, that it measures does."""

import json
import os
from argparse import Namespace
from io import StringIO

import pytest

from tests.bench import added_latency, curves, full_caches, key_pool, throughput
from tests.bench.__main__ import parse, written
from tests.bench.cluster_objects import Size
from tests.bench.report import FULL, HOOKS, NEW, YARDSTICK, of
from tests.bench.section import Section, Table
from tests.controlplane.assets import assets
from tests.controlplane.progress import Progress
from tests.support.paths import ROOT
from tests.support.samples import rare

assets()  # builds, if nothing is built, before the time limit of a test counts
QUICK = Namespace(
    seconds=0.2,
    rounds=1,
    connections=4,
    without=["pod-security", "opa", "kyverno", "new", "caches"],
    base="",
    python=None,
    sizes=[],
)

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is for the server, one for the load")


def lines(section: Section) -> int:
    return sum(len(table.lines) for table in section.tables)


@rare
def test_a_short_run_fills_the_whole_table() -> None:
    progress = StringIO()
    found = throughput.measure(Namespace(**{**vars(QUICK), "base": str(ROOT)}), Progress(progress))
    assert {(row.server, row.rate) for row in found.rows} == {
        (server, rate)
        for server in (YARDSTICK, *HOOKS, *(hook + of(str(ROOT)) for hook in HOOKS))
        for rate in throughput.RATES
    }
    for row in found.rows:
        (sample,) = row.samples
        assert (sample.errors, sample.error) == (0, "")
        assert sample.requests > 0
        assert row.memory > 5
    section = found.section()
    assert {line[0] for line in section.tables[1].lines} >= {"memory", "validate: p99 at 1,000/s"}
    assert section.text(markdown=False).count("\n") > 15
    assert section.text(markdown=True).count("| --- |") == 3
    assert "round 1" in progress.getvalue()


@rare
def test_new_jobs_and_those_beside_full_caches_are_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_caches, "SIZE", Size.of(100))
    wanted = Namespace(**{**vars(QUICK), "without": ["pod-security", "opa", "kyverno"]})
    found = throughput.measure(wanted, Progress(StringIO()))
    for suffix in (NEW, FULL):
        assert [row.errors for row in found.rows if row.server.endswith(suffix)] == [0] * 6


@rare
def test_curves_have_a_line_for_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "JOBS", 2)
    found = curves.measure(QUICK, Progress(StringIO()))
    containers, rules, _ = found.tables
    assert [line[0] for line in containers.lines[1:]] == ["1", "2", "5", "10", "20", "50"]
    assert int(rules.lines[1][0]) == 1 < int(rules.lines[-1][0])
    assert not found.failed


@rare
def test_each_hook_is_called_by_the_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added_latency, "EACH", 2)
    found = added_latency.measure(QUICK, Progress(StringIO()))
    assert [line[0] for line in found.tables[0].lines[1:]] == [
        "none", "Go, allows only", "validate", "mutate", "our patch, replayed", "a patch of one label, replayed",
        "no patch, replayed", "validate and mutate",
    ]  # fmt: skip
    assert lines(found) == 9 + 3


@rare
def test_reviews_are_answered_while_keys_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_pool, "RATES", (100,))
    found = key_pool.measure(Namespace(**{**vars(QUICK), "seconds": 1}), Progress(StringIO()))
    assert lines(found) == 1 + 3


def test_all_parts_are_measured_by_default_and_written_as_json() -> None:
    arguments = parse([])
    assert arguments.only == ["servers", "curves", "latency", "start", "keys"]
    section = Section(tables=[Table(lines=[("x", "y"), ("1", "2")])])
    (table,) = json.loads(written({"curves": section}))["parts"]["curves"]["tables"]
    assert table == {"lines": [["x", "y"], ["1", "2"]], "left": 1}
