"""What the pictures of docs/benchmarks.md show, out of the tables of that page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.bench import documented

Table = Sequence[Sequence[str]]
Tables = Mapping[tuple[str, int], Table]


@dataclass(frozen=True)
class Panel:
    """Columns of a table over the first of its columns: as lines where that is a number, as bars where it is a name."""

    title: str
    part: str
    number: int
    columns: tuple[str, ...]
    where: Mapping[str, str] = field(default_factory=dict)
    """Only the lines with these cells."""

    @property
    def place(self) -> tuple[str, int]:
        """Of its table."""
        return self.part, self.number

    def cells(self, tables: Tables) -> Iterator[tuple[str, ...]]:
        """The name of each line or its number, and the columns."""
        headings, *lines = tables[self.place]
        wanted = [headings.index(name) for name in (headings[0], *self.columns)]
        for line in lines:
            if all(line[headings.index(name)] == cell for name, cell in self.where.items()):
                yield tuple(line[position] for position in wanted)


@dataclass(frozen=True)
class Picture:
    """A file of docs/benchmarks."""

    name: str
    title: str
    panels: tuple[Panel, ...]

    def described(self, tables: Tables) -> str:
        """All that it shows, for those who do not see it, and for the test that holds it against the page."""
        told = []
        for panel in self.panels:
            lines = [
                f"{name}: " + ", ".join(f"{column} {cell}" for column, cell in zip(panel.columns, cells, strict=True))
                for name, *cells in panel.cells(tables)
            ]
            told.append(f"{panel.title}, {tables[panel.place][0][0]}: {'; '.join(lines)}.")
        return " ".join(told)


PICTURES: Final = (
    Picture(
        "servers",
        "Requests a second, latency and memory of each server",
        (
            Panel("Requests/s", "servers", 0, ("requests/s",), {"load": "saturated"}),
            Panel("p99 ms at 1,000/s", "servers", 0, ("p99 ms",), {"load": "1,000/s"}),
            Panel("Peak MiB", "servers", 0, ("peak MiB",), {"load": "saturated"}),
        ),
    ),
    Picture(
        "curves",
        "Processor time of a review by containers of a worker, by rules that are on and by jobs in the cluster",
        (
            Panel("µs by containers of a worker", "curves", 0, ("validate µs", "mutate µs")),
            Panel("µs by rules on", "curves", 1, ("validate µs",)),
            Panel("µs by jobs in the cluster", "curves", 2, ("validate µs", "mutate µs")),
        ),
    ),
    Picture(
        "latency",
        "What a creation at the API server takes with each hook",
        (
            Panel("p50 ms", "latency", 0, ("p50 ms",)),
            Panel("p99 ms", "latency", 0, ("p99 ms",)),
        ),
    ),
)


def tables(page: str) -> Tables:
    """The measured tables of the page."""
    return {
        (match["part"], int(match["number"])): [*_lines(match["table"])] for match in documented.PLACE.finditer(page)
    }


def _lines(table: str) -> Iterator[tuple[str, ...]]:
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            yield tuple(cell.strip() for cell in line.strip("|").split("|"))
