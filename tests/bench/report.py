"""Turns samples into the table and the budgets. It reads no clock and no files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from tests.bench.measure import Sample

YARDSTICK: Final = "Go, allows everything"
POD_SECURITY: Final = "Go, pod-security-admission"
OPA: Final = "OPA, ten rules"
HOOKS: Final = ("validate", "mutate")
FULL: Final = ", 10,000 jobs cached"
"""Suffix of `Row.server` if the caches of the service were full."""
HEADINGS: Final = (
    "server", "load", "requests/s", "of Go", "p50 ms", "p99 ms", "p99.9 ms", "CPU µs", "peak MiB"
)  # fmt: skip
LOAD_LIMIT: Final = 0.9
"""If the load generator uses a larger share of its core, it may limit the requests/s."""
BUSY: Final = 0.1
"""Cores that other programs may use during a valid measurement."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The results of a server under one load, with a sample for each round.

    `rate` is the rate of the load (`measure.Load`). `memory` is the server's peak memory in MiB.
    """

    server: str
    rate: int | None
    samples: Sequence[Sample]
    memory: float

    def median(self, value: Callable[[Sample], float]) -> float:
        return median(value(sample) for sample in self.samples)

    @property
    def errors(self) -> int:
        """Wrong and missing replies of all rounds. The figures are only valid without errors."""
        return sum(sample.errors for sample in self.samples)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A goal and the measured value `now`.

    With `at_least`, `now` must be at least the goal. Without `at_least`, `now` must be below the goal.
    """

    name: str
    goal: float
    now: float
    unit: str = ""
    at_least: bool = False

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The cells of the table: name, goal, measured value, verdict."""
        met = self.now >= self.goal if self.at_least else self.now < self.goal
        sign = ">=" if self.at_least else "<"
        digits = 2 if self.goal <= 1 else 1
        unit = f" {self.unit}" if self.unit else ""
        return self.name, f"{sign} {self.goal:g}{unit}", f"{self.now:.{digits}f}{unit}", "met" if met else "missed"


def ratio(row: Row, yardstick: Row) -> float:
    """Requests/s of `row` divided by the requests/s of `yardstick`: the median over the rounds."""
    pairs = zip(row.samples, yardstick.samples, strict=True)
    return median(ours.rps / theirs.rps if theirs.rps else 0.0 for ours, theirs in pairs)


def table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The headings and a line of cells for each row. Ratio and processor time are only shown for a saturated server."""
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


def budgets(rows: Sequence[Row]) -> Iterator[Budget]:
    """The budgets for which there are rows."""
    by_load = {(row.server, row.rate): row for row in rows}
    for hook, goal in zip(HOOKS, (0.30, 0.45), strict=True):
        now = ratio(by_load[hook, None], by_load[YARDSTICK, None])
        yield Budget(name=f"{hook}: share of Go's requests/s", goal=goal, now=now, at_least=True)
    if (OPA, None) in by_load:
        now = ratio(by_load["validate", None], by_load[OPA, None])
        yield Budget(
            name="validate: multiple of OPA's requests/s, with ten rules in OPA", goal=1.5, now=now, at_least=True
        )
    for rate, milliseconds in ((100, 5), (1000, 15)):
        for hook in HOOKS:
            p99 = by_load[hook, rate].median(lambda sample: sample.p99)
            yield Budget(name=f"{hook}: p99 at {rate:,}/s", goal=milliseconds, now=p99, unit="ms")
    if full := [row.memory for row in rows if row.server.endswith(FULL)]:
        yield Budget(name="memory with 10,000 cached jobs", goal=150, now=max(full), unit="MiB")


def verdicts(budgets: Iterator[Budget]) -> str:
    return text([("budget", "goal", "now", ""), *(budget.cells for budget in budgets)], left=1)


def problems(rows: Sequence[Row]) -> Iterator[str]:
    """The reasons why the figures are unreliable."""
    samples = [sample for row in rows for sample in row.samples]
    others = sum(sample.others for sample in samples) / len(samples)
    if others > BUSY:
        yield f"Other programs used {others:.1f} cores: run this again on a quiet machine."
    for row in rows:
        if row.rate is None and row.median(lambda sample: sample.load_cpu) > LOAD_LIMIT:
            yield f"{row.server}: the load generator was at its limit, the server may be faster."
        if row.errors:
            error = next(sample.error for sample in row.samples if sample.errors)
            yield f"{row.server}: {row.errors} wrong or missing replies, the first: {error}"


def text(lines: Sequence[Sequence[str]], *, left: int) -> str:
    """A Markdown table with padded columns. The first `left` columns are aligned to the left."""
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width if number < left else "-" * (width - 1) + ":" for number, width in enumerate(widths)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    headings, *rest = lines
    return "\n".join(map(line, (headings, rule, *rest)))
