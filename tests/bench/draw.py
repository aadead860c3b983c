"""Draws the pictures of docs/benchmarks.md anew, out of its tables: `make bench-docs`."""

import re
import sys
from collections.abc import Sequence
from html import escape
from io import StringIO
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib import pyplot

from tests.bench import documented
from tests.bench.figures import PICTURES, Panel, Picture, Tables, tables

# Matplotlib knows no variables of CSS: these colours stand for them, and nothing else has them.
INK, QUIET, PAPER = "#010203", "#040506", "#070809"
STYLE: Final = """<style>
:root { --ink: #1f2328; --quiet: #d8dce2; --paper: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --quiet: #3a3f46; --paper: #131416; } }
</style>"""
VARIABLES: Final = {INK: "var(--ink)", QUIET: "var(--quiet)", PAPER: "var(--paper)"}
# Can be told from each other, and seen on either paper.
OTHERS: Final = "#8a919c"
OURS: Final = {"validate and mutate": "#8a74cf", "validate": "#3b82c4", "mutate": "#c9762b"}
SETTINGS: Final = {
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "benchmarks",  # the same file from the same figures
    "axes.edgecolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "grid.color": QUIET,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "text.color": INK,
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
}
WIDTH: Final = 7.6
"""Inches: the column of text of the site."""


def _number(cell: str) -> float:
    return float(cell.replace(",", ""))


def _colour(name: str) -> str:
    return next((colour for hook, colour in OURS.items() if name.startswith(hook)), OTHERS)


def _bars(axes: Any, lines: Sequence[Sequence[str]]) -> None:
    names = [name for name, _ in lines]
    drawn = axes.barh(names, [_number(cell) for _, cell in lines], color=[_colour(name) for name in names])
    axes.bar_label(drawn, [cell for _, cell in lines], padding=3)
    axes.margins(x=0.3)  # room for the figures
    axes.tick_params(length=0, labelbottom=False)
    axes.spines[["bottom"]].set_visible(False)


def _lines(axes: Any, panel: Panel, lines: Sequence[Sequence[str]]) -> None:
    growing = [lines[0]] + [after for _, after in takewhile(_grows, pairwise(lines))]
    at = [_number(line[0]) for line in growing]
    for position, column in enumerate(panel.columns, start=1):
        name = column.removesuffix(" µs")
        heights = [_number(line[position]) for line in growing]
        axes.plot(at, heights, marker="o", color=OURS[name], label=name, clip_on=False)
    axes.set_xscale("log" if at[-1] > 1000 else "linear")
    axes.set_xlim(right=at[-1] * (2 if at[-1] > 1000 else 1.05))
    axes.set_ylim(0, axes.get_ylim()[1])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(axis="y")
    axes.legend()


def _grows(pair: tuple[Sequence[str], Sequence[str]]) -> bool:
    return _number(pair[0][0]) < _number(pair[1][0])


def picture(wanted: Picture, found: Tables) -> str:
    """It, as SVG."""
    contents = [[*panel.cells(found)] for panel in wanted.panels]
    bars = not contents[0][0][0].replace(",", "").isdigit()
    height = 0.6 + 0.26 * len(contents[0]) if bars else 2.6
    with mpl.rc_context(SETTINGS):
        figure, grid = pyplot.subplots(
            1, len(contents), figsize=(WIDTH, height), sharey=bars, squeeze=False, layout="constrained"
        )
        for axes, panel, lines in zip(grid.flat, wanted.panels, contents, strict=True):
            axes.set_title(panel.title)
            if bars:
                _bars(axes, lines)
            else:
                _lines(axes, panel, lines)
        if bars:
            grid[0, 0].invert_yaxis()  # which all share: the first line of a table is above
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    return _finished(written.getvalue(), wanted.title, wanted.described(found))


def _finished(svg: str, title: str, description: str) -> str:
    """In the reader's colours, and with words for those who do not see it."""
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    words = f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>"
    svg = re.sub(r"(<svg [^>]*)>", rf'\1 role="img">\n{words}\n{STYLE}', svg, count=1)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


def main(folder: Path) -> None:
    """Write all of them."""
    mpl.use("agg")
    folder.mkdir(exist_ok=True)
    found = tables(documented.PAGE.read_text(encoding="utf-8"))
    for each in PICTURES:
        (folder / f"{each.name}.svg").write_text(picture(each, found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
