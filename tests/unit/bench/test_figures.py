"""The pictures of docs/benchmarks.md are those of its tables."""

import re
import subprocess
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench import environment
from tests.bench.documented import PAGE
from tests.bench.figures import PICTURES, Panel, Picture, tables
from tests.controlplane.progress import Progress
from tests.support.paths import DOCS, ROOT
from tests.support.samples import FULL

FOLDER = DOCS / "benchmarks"
SVG = "{http://www.w3.org/2000/svg}"
TABLES = {("servers", 0): [("server", "load", "p99 ms"), ("ours", "100/s", "2.5"), ("ours", "saturated", "1,300")]}


def test_what_a_picture_says_in_words() -> None:
    panel = Panel("p99", "servers", 0, ("p99 ms",), {"load": "saturated"})
    assert Picture("x", "X", (panel,)).described(TABLES) == "p99, server: ours: p99 ms 1,300."


def test_the_tables_of_the_page_are_read() -> None:
    page = "<!-- measured: curves 1 -->\n\n| x | y |\n| --- | ---: |\n| 1 | 2,000 |\n\n2 cores.\n\n<!-- end -->\n"
    assert tables(page) == {("curves", 1): [("x", "y"), ("1", "2,000")]}


@pytest.mark.parametrize("wanted", PICTURES, ids=lambda wanted: wanted.name)
def test_every_picture_shows_the_figures_of_the_page(wanted: Picture) -> None:
    page = PAGE.read_text(encoding="utf-8")
    drawn = ElementTree.parse(FOLDER / f"{wanted.name}.svg").getroot()
    assert drawn.findtext(f"{SVG}title") == wanted.title
    assert drawn.findtext(f"{SVG}desc") == wanted.described(tables(page)), "run `make bench-docs`"
    assert re.search(rf"^!\[[^\]]{{20,}}\]\(benchmarks/{wanted.name}\.svg\)$", page, re.MULTILINE)


def test_no_picture_is_left_over() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {wanted.name for wanted in PICTURES}


@pytest.mark.timeout(900)
@pytest.mark.skipif(not FULL, reason="packages are fetched: `make test-long`")
def test_they_are_drawn(tmp_path: Path) -> None:
    python = environment.this(Progress(), ROOT / "requirements" / "draw.txt").python
    subprocess.run([python, "-m", "tests.bench.draw", tmp_path], cwd=ROOT, check=True)
    found = tables(PAGE.read_text(encoding="utf-8"))
    for wanted in PICTURES:
        text = unescape((tmp_path / f"{wanted.name}.svg").read_text(encoding="utf-8"))
        assert "prefers-color-scheme: dark" in text
        assert "<dc:date>" not in text, "the same figures make the same file"
        shown = text.partition("</desc>")[2]
        for panel in wanted.panels:
            assert f">{panel.title}<" in shown
            names = [name for name, *_ in panel.cells(found) if not name[0].isdigit()]
            assert [name for name in names if f">{name}<" not in shown] == []
