"""From samples to the table and the budgets. Pure: no clock, no files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from tests.bench.measure import Sample

YARDSTICK = "Go, allows only"
POD_SECURITY = "Go, pod-security-admission"
OPA = "OPA, ten rules"
HOOKS = ("validate", "mutate")
"""Ours, as they are now."""
FULL = ", 10,000 jobs cached"
"""What their names end with where their caches are full."""
NEW = ", every job new"
"""Where no template comes again while it is remembered."""
OFF = ", nothing on"
"""Where every rule and injection is off, and a review is received, read, answered and logged."""
HEADINGS = ("server", "load", "requests/s", "of Go", "p50 ms", "p99 ms", "p99.9 ms", "CPU µs", "peak MiB")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One server under one load: `rate` as in measure.Load; a sample for each round; `memory` is its peak in MiB."""

    server: str
    rate: int | None
    samples: Sequence[Sample]
    memory: float

    def median(self, value: Callable[[Sample], float]) -> float:
        """The median of `value` over the rounds."""
        return median(value(sample) for sample in self.samples)

    @property
    def errors(self) -> int:
        """Wrong and missing answers of all rounds: with any, the figures mean nothing."""
        return sum(sample.errors for sample in self.samples)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What is asked for, and what was measured; `at_least` says on which side of the `goal` is good."""

    what: str
    goal: float
    now: float
    unit: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.now >= self.goal if self.at_least else self.now < self.goal

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """What, goal, now, verdict."""
        sign = ">=" if self.at_least else "<"
        digits = 2 if self.goal <= 1 else 1
        unit = f" {self.unit}" if self.unit else ""
        return self.what, f"{sign} {self.goal:g}{unit}", f"{self.now:.{digits}f}{unit}", "met" if self.met else "missed"


def ratio(row: Row, yardstick: Row) -> float:
    """Requests/s of `row` beside those of `yardstick`, the median over the rounds: what slows the machine for a while
    slows both."""
    pairs = zip(row.samples, yardstick.samples, strict=True)
    return median(ours.rps / theirs.rps if theirs.rps else 0.0 for ours, theirs in pairs)


def table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The headings and a line of cells for each row. The ratio and the processor time need a server at its limit, so
    rows with a fixed rate have neither."""
    yardstick = next(row for row in rows if row.server == YARDSTICK and row.rate is None)
    lines: list[tuple[str, ...]] = [HEADINGS]
    for row in rows:
        saturated = row.rate is None
        lines.append(
            (
                row.server,
                "saturated" if saturated else f"{row.rate:,}/s",
                f"{row.median(lambda sample: sample.rps):,.0f}",
                f"{ratio(row, yardstick):.2f}" if saturated else "",
                f"{row.median(lambda sample: sample.p50):.1f}",
                f"{row.median(lambda sample: sample.p99):.1f}",
                f"{row.median(lambda sample: sample.p999):.1f}",
                f"{row.median(lambda sample: sample.cpu_micros):.0f}" if saturated else "",
                f"{row.memory:.0f}",
            )
        )
    return lines


def of(revision: str) -> str:
    """What the names of the hooks of another revision end with."""
    return f" of {revision}"


def compared(rows: Sequence[Row], revision: str) -> list[tuple[str, ...]]:
    """The headings and a line for each hook and load: now beside `revision`, above 1 where there is more of it now."""
    lines = [("server", "load", "requests/s", "p50", "p99", "CPU", "peak memory")]
    for row in rows:
        if row.server in HOOKS:
            before = next(each for each in rows if (each.server, each.rate) == (row.server + of(revision), row.rate))
            latencies = (
                row.median(value) / before.median(value)
                for value in (lambda sample: sample.p50, lambda sample: sample.p99, lambda sample: sample.cpu_micros)
            )
            beside = (ratio(row, before), *latencies, row.memory / before.memory)
            load = "saturated" if row.rate is None else f"{row.rate:,}/s"
            lines.append((row.server, load, *(f"{each:.2f}" for each in beside)))
    return lines


def budgets(rows: Sequence[Row]) -> list[Budget]:
    """The budgets of the finished service that these rows can speak of."""
    saturated = {row.server: row for row in rows if row.rate is None}
    ours = [row for row in rows if row.server in {hook + suffix for hook in HOOKS for suffix in ("", NEW, FULL)}]
    found = [
        Budget(what=f"{row.server}: requests/s beside {of}", goal=goal, now=ratio(row, saturated[peer]), at_least=True)
        for peer, of, goal in ((YARDSTICK, "Go's", 1.0), (OPA, "OPA's", 5.0), (POD_SECURITY, "Pod Security's", 2.0))
        if peer in saturated
        for row in ours
        if row.rate is None
    ]
    for rate, goal in ((100, 5), (1000, 25)):
        found += [
            Budget(
                what=f"{row.server}: p99 at {rate:,}/s", goal=goal, now=row.median(lambda sample: sample.p99), unit="ms"
            )
            for row in ours
            if row.rate == rate
        ]
    return [*found, Budget(what="memory", goal=150, now=max(row.memory for row in ours), unit="MiB")]


def text(lines: Sequence[Sequence[str]], *, left: int) -> str:
    """Columns of equal width, the first `left` of them to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    return "\n".join(map(line, lines))


def markdown(lines: Sequence[Sequence[str]], *, left: int) -> str:
    """The same as a table in Markdown."""
    headings, *rest = lines
    rules = ["---" if number < left else "---:" for number in range(len(headings))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (headings, rules, *rest))
