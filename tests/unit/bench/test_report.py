"""From samples to tables and verdicts."""

from collections.abc import Sequence

import pytest

from tests.bench.measure import Sample, sample
from tests.bench.report import FULL, OPA, YARDSTICK, Budget, Row, budgets, problems, ratio, table, text


def taken(rps: float, *, p99: float = 2, errors: int = 0, load_cpu: float = 0.5, others: float = 0.02) -> Sample:
    return Sample(
        requests=round(rps),
        errors=errors,
        error="status 500" if errors else "",
        seconds=1,
        rps=rps,
        p50=1,
        p90=1.5,
        p99=p99,
        p999=8,
        max=9,
        cpu_micros=100,
        load_cpu=load_cpu,
        others=others,
        go="go1.26",
    )


def row(server: str, rps: Sequence[float], *, rate: int | None = None, memory: float = 60, p99: float = 2) -> Row:
    return Row(server=server, rate=rate, memory=memory, samples=[taken(one, p99=p99) for one in rps])


GO = row(YARDSTICK, [6000, 3000, 6200], memory=16)


def test_the_ratio_compares_within_a_round() -> None:
    # The machine was slow in the second round, for both: 1.2, 1.1 and 1.0 times the requests.
    assert ratio(row("validate", [7200, 3300, 6200]), GO) == pytest.approx(1.1)


def test_the_ratio_to_a_yardstick_that_answered_nothing_is_no_number_to_be_proud_of() -> None:
    assert ratio(row("validate", [6000]), row(YARDSTICK, [0])) == 0


def test_rounds_that_do_not_pair_up_are_a_fault() -> None:
    with pytest.raises(ValueError, match="zip"):
        ratio(row("validate", [6000]), GO)


def test_the_table_shows_medians_and_leaves_out_what_a_fixed_rate_cannot_tell() -> None:
    rows = [GO, row("validate", [7200, 3300, 6200]), row("validate", [1000, 1000, 999], rate=1000, p99=4.25)]
    assert table(rows)[1:] == [
        (YARDSTICK, "saturated", "6,000", "1.00", "1.0", "2.0", "8.0", "100", "16"),
        ("validate", "saturated", "6,200", "1.10", "1.0", "2.0", "8.0", "100", "60"),
        ("validate", "1,000/s", "1,000", "", "1.0", "4.2", "8.0", "", "60"),
    ]


@pytest.mark.parametrize(
    ("now", "at_least", "met"), [(1.0, True, True), (0.99, True, False), (1.0, False, False), (0.99, False, True)]
)
def test_a_budget_is_met_on_the_right_side_of_its_goal(*, now: float, at_least: bool, met: bool) -> None:
    assert Budget(what="x", goal=1, now=now, at_least=at_least).met is met


def test_budgets_are_those_of_the_page() -> None:
    rows = [
        GO,
        row(OPA, [1000, 500, 1000]),
        row("validate", [1800, 900, 1860]),
        row("mutate", [2400, 1200, 2480], memory=151),
        row("mutate" + FULL, [2000, 1000, 2000], memory=140),
        *(row(name, [100], rate=100, p99=p99) for name, p99 in ((YARDSTICK, 99.0), ("validate", 4.9), ("mutate", 5.0))),
        *(row(name, [1000], rate=1000, p99=14.9) for name in (YARDSTICK, "validate", "mutate")),
    ]
    assert [budget.cells for budget in budgets(rows)] == [
        ("validate: requests/s of Go's", ">= 0.3", "0.30", "met"),
        ("mutate: requests/s of Go's", ">= 0.45", "0.40", "missed"),
        ("validate: requests/s of OPA's with ten rules", ">= 1.5", "1.8", "met"),
        ("validate: p99 at 100/s", "< 5 ms", "4.9 ms", "met"),
        ("mutate: p99 at 100/s", "< 5 ms", "5.0 ms", "missed"),
        ("validate: p99 at 1,000/s", "< 15 ms", "14.9 ms", "met"),
        ("mutate: p99 at 1,000/s", "< 15 ms", "14.9 ms", "met"),
        ("memory with 10,000 cached jobs", "< 150 MiB", "140.0 MiB", "met"),
    ]


def test_a_table_is_markdown_with_columns_of_equal_width() -> None:
    lines = [("server", "p99"), ("Go", "12.0"), ("validate", "9.5")]
    assert text(lines, left=1).splitlines() == [
        "| server   |  p99 |",
        "| -------- | ---: |",
        "| Go       | 12.0 |",
        "| validate |  9.5 |",
    ]


def test_a_quiet_run_without_errors_has_no_problems() -> None:
    assert [*problems([GO, row("validate", [6000, 6000, 6000])])] == []


def test_what_speaks_against_the_figures_is_said() -> None:
    wrong = Row(server="validate", rate=100, memory=60, samples=[taken(100), taken(99, errors=3)])
    limited = Row(server="mutate", rate=None, memory=60, samples=[taken(9000, load_cpu=0.95)] * 3)
    disturbed = Row(server="validate", rate=1000, memory=60, samples=[taken(1000, others=1.98)])
    busy, limit, errors = problems([GO, limited, wrong, disturbed])
    assert busy.startswith("Other programs used 0.2 cores")  # 8 x 0.02 and 1.98, over 9 measurements
    assert limit.startswith("mutate: the load generator was at its limit")
    assert errors == "validate: 3 wrong or missing answers, the first: status 500"


def test_processor_time_is_for_each_request_that_was_sent_in_the_warm_up_too() -> None:
    printed = {
        "sent": 1200,
        "requests": 1000,
        "errors": 0,
        "seconds": 2.0,
        "cpu_seconds": 1.0,
        "rps": 500.0,
        "p50": 1.0,
        "p90": 2.0,
        "p99": 3.0,
        "p999": 3.5,
        "max": 4.0,
        "go": "go1.26",
    }
    found = sample(printed, server_cpu=0.24, others=0)
    assert found.cpu_micros == pytest.approx(200)
    assert found.load_cpu == pytest.approx(0.5)
    assert found.error == ""
