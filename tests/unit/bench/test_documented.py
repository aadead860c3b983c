"""The tables of docs/benchmarks.md out of the figures of a run."""

import pytest

from tests.bench.__main__ import PARTS
from tests.bench.documented import PAGE, PLACE, filled

PLACES = [(match["part"], int(match["number"])) for match in PLACE.finditer(PAGE.read_text())]
FOUND = {"machine": "2 cores", "parts": {"curves": {"tables": [{"lines": [["x", "y"], ["1", "2"]], "left": 1}]}}}


def page(part: str, number: int) -> str:
    return f"before\n<!-- measured: {part} {number} -->\nold\n<!-- end -->\nafter\n"


def test_a_table_takes_its_place() -> None:
    table = "| x | y |\n| --- | ---: |\n| 1 | 2 |\n\n2 cores.\n"
    written = f"before\n<!-- measured: curves 0 -->\n\n{table}\n<!-- end -->\nafter\n"
    assert filled(page("curves", 0), FOUND) == written


@pytest.mark.parametrize(("part", "number"), [("curves", 1), ("latency", 0)])
def test_what_was_not_measured_stays(part: str, number: int) -> None:
    assert filled(page(part, number), FOUND) == page(part, number)


def test_the_page_has_a_place_for_each_part() -> None:
    assert {part for part, _ in PLACES} == {*PARTS}
    assert len(PLACES) == len(set(PLACES))
