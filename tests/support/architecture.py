"""The picture of the rooms, drawn from the imports: `python -m tests.support.architecture docs/architecture.svg`.

The floors are those of the import contract in pyproject.toml, the words those of the tree in docs/architecture.md, the
arrows the imports between the rooms. An arrow is left out where a longer way of arrows leads to the same room. Rooms
that may do no I/O stand on the left.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any

import grimp

from tests.support.paths import DOCS, ROOT

PAGE = DOCS / "architecture.md"
PICTURE = DOCS / "architecture.svg"
LIBRARY = "certs"

BOX, ROW, GAP, GUTTER, MARGIN = 62, 100, 24, 70, 16
PURE_WIDTH, OUTSIDE_WIDTH = 560, 330
STEP = 22  # between arrows that run beside each other
ROUND = 12

# Colours that can be read on white and on black: boxes bring their own background.
STYLE = """
text { font-family: ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
.name { font-family: ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace; font-weight: 700;
        font-size: 16px; }
.what { font-size: 12.5px; }
.head { font-size: 13px; font-weight: 600; fill: #7d8796; }
.note { font-size: 12.5px; fill: #7d8796; }
.pure rect { fill: #e3f1e7; stroke: #3f8f5b; } .pure text { fill: #173d26; }
.outside rect { fill: #e4ecfa; stroke: #4a77c4; } .outside text { fill: #16315f; }
.alone rect { fill: #f6ecd9; stroke: #b3832f; } .alone text { fill: #4d370d; }
.arrow { fill: none; stroke: #8390a2; stroke-width: 1.8; marker-end: url(#head); }
"""


def contracts() -> Mapping[str, Any]:
    """The import contracts by name."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return {contract["type"] + " " + contract["name"]: contract for contract in config["contracts"]}


def floors() -> list[list[str]]:
    """The rooms of each floor, from the top one down."""
    (layers,) = (contract["layers"] for contract in contracts().values() if contract["type"] == "layers")
    named = [[room.strip().removeprefix("webhook.") for room in layer.split("|")] for layer in layers]
    return [floor for floor in named if floor != ["__main__"]]


def pure() -> frozenset[str]:
    """The rooms that may do no I/O."""
    (found,) = (each for name, each in contracts().items() if name.endswith("What decides does no I/O"))
    return frozenset(room.removeprefix("webhook.") for room in found["source_modules"])


def captions() -> dict[str, str]:
    """What the tree in docs/architecture.md says of each room."""
    tree = PAGE.read_text(encoding="utf-8").partition("```\n")[2].partition("```")[0]
    return {name: text for name, text in re.findall(r"^ *(\w+)/ +(\S.*)$", tree, re.MULTILINE) if name != "webhook"}


def imports() -> dict[str, set[str]]:
    """Which rooms each room imports."""
    graph = grimp.build_graph("webhook", LIBRARY, cache_dir=None)
    modules = {room: room if room == LIBRARY else f"webhook.{room}" for room in (*chain(*floors()), LIBRARY)}
    return {
        room: {
            other
            for other, imported in modules.items()
            if other != room and graph.direct_import_exists(importer=module, imported=imported, as_packages=True)
        }
        for room, module in modules.items()
    }


def arrows(imported: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The imports that no longer way implies."""

    def reachable(room: str) -> set[str]:
        return set().union(*({other} | reachable(other) for other in imported[room]))

    return [
        (room, other)
        for room, others in imported.items()
        for other in sorted(others)
        if not any(other in reachable(between) for between in others - {other})
    ]


@dataclass(frozen=True)
class Room:
    """A box of the picture."""

    name: str
    floor: int
    kind: str
    x: float
    width: float

    @property
    def top(self) -> float:
        return MARGIN + 34 + self.floor * ROW

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.top + BOX


def rooms() -> dict[str, Room]:
    """Every room in its place: what decides on the left, what talks to the outside on the right."""
    found = {}
    for floor, names in enumerate(floors()):
        lanes = {"pure": [name for name in names if name in pure()]}
        lanes["outside"] = [name for name in names if name not in pure()]
        if floor == len(floors()) - 1:
            lanes["alone"] = [LIBRARY]
        for kind, lane in lanes.items():
            left, whole = (MARGIN, PURE_WIDTH) if kind == "pure" else (MARGIN + PURE_WIDTH + GUTTER, OUTSIDE_WIDTH)
            width = (whole - GAP * (len(lane) - 1)) / max(len(lane), 1)
            for index, name in enumerate(lane):
                found[name] = Room(name, floor, kind, left + index * (width + GAP), width)
    return found


def ends(placed: Mapping[str, Room], drawn: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[float, float]]:
    """Where each arrow leaves the one box and enters the other."""
    leaving = {arrow: _at(placed, arrow[0], arrow[1], [b for a, b in drawn if a == arrow[0]]) for arrow in drawn}
    entering = {arrow: _at(placed, arrow[1], arrow[0], [a for a, b in drawn if b == arrow[1]]) for arrow in drawn}
    return {
        arrow: (x, x if abs(x - entering[arrow]) < ROUND else entering[arrow])  # no kink in what is almost straight
        for arrow, x in leaving.items()
    }


def _at(placed: Mapping[str, Room], name: str, other: str, all_others: list[str]) -> float:
    """Where on `name` the arrow to or from `other` is: in the middle below a wider box, else on the side of `other`."""
    room, wider = placed[name], placed[other]
    if wider.x <= room.x and room.x + room.width <= wider.x + wider.width:
        return room.middle
    left = wider.middle < room.middle
    beside = [each for each in all_others if placed[each].middle != room.middle]
    beside = sorted(
        (each for each in beside if (placed[each].middle < room.middle) is left), key=lambda each: placed[each].x
    )
    share = (beside.index(other) + 1) / (len(beside) + 1) / 2
    return room.x + room.width * (share if left else 0.5 + share)


def paths(placed: Mapping[str, Room]) -> Iterator[str]:
    """The way of each arrow: straight down where nothing is between, else beside the boxes."""
    right = max(room.x + room.width for room in placed.values())
    drawn = arrows(imports())
    long = [arrow for arrow in drawn if _blocked(placed, *arrow)]
    attached = ends(placed, [arrow for arrow in drawn if arrow not in long])
    for lane, (name, other) in enumerate(long, start=1):
        start, end, x = placed[name], placed[other], right + STEP * lane
        yield (
            f"M{start.x + start.width:g} {start.top + BOX * 0.7:g} H{x - ROUND:g} q{ROUND} 0 {ROUND} {ROUND} "
            f"V{end.top + BOX * 0.3 - ROUND:g} q0 {ROUND} -{ROUND} {ROUND} H{end.x + end.width + 7:g}"
        )
    for (name, other), (leaves, enters) in attached.items():
        start, end = placed[name], placed[other]
        last = end.top - 7  # the head is longer than the line
        bend = end.top - (ROW - BOX)  # a long one first goes down
        half = (bend + end.top) / 2
        curve = f"C{leaves:g} {half + 6:g} {enters:g} {half - 6:g} {enters:g} {last:g}"
        yield f"M{leaves:g} {start.bottom:g} V{bend:g} {curve}"


def _blocked(placed: Mapping[str, Room], name: str, other: str) -> bool:
    """Whether a room stands between two of the same side."""
    start, end = placed[name], placed[other]
    return any(
        start.floor < room.floor < end.floor and room.x < end.x + end.width and end.x < room.x + room.width
        for room in placed.values()
    )


def draw() -> str:
    """The SVG."""
    placed, texts = rooms(), captions()
    width = max(room.x + room.width for room in placed.values()) + 3 * STEP + MARGIN
    height = max(room.bottom for room in placed.values()) + MARGIN
    first_pure = min(room.top for room in placed.values() if room.kind == "pure")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
        "<title>The rooms of the service, and which imports which</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="5" markerHeight="5" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#8390a2"/></marker></defs>',
        f'<text class="head" x="{MARGIN}" y="{first_pure - 12:g}">decides: no network, no clock, no files</text>',
        f'<text class="note" x="{MARGIN}" y="{MARGIN + 14}">An arrow means: imports.</text>',
        f'<text class="note" x="{MARGIN}" y="{MARGIN + 32}">'
        "It is left out where a longer way of arrows leads to the same room.</text>",
        f'<text class="head" x="{MARGIN + PURE_WIDTH + GUTTER}" y="{MARGIN + 14}">meets the outside</text>',
    ]
    lines += [f'<path class="arrow" d="{path}"/>' for path in paths(placed)]
    for room in placed.values():
        lines += [
            f'<g class="{room.kind}" text-anchor="middle">',
            f'<rect x="{room.x:g}" y="{room.top:g}" width="{room.width:g}" height="{BOX}" rx="8" stroke-width="1.5"/>',
            f'<text class="name" x="{room.middle:g}" y="{room.top + 27:g}">{escape(room.name)}</text>',
            f'<text class="what" x="{room.middle:g}" y="{room.top + 47:g}">{escape(texts[room.name])}</text>',
            "</g>",
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(), encoding="utf-8")
