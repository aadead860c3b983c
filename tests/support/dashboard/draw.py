"""`make dashboard-pictures`: what each panel shows of a real run, a picture for each row: docs/dashboard."""

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import matplotlib as mpl
from matplotlib import pyplot

from tests.support.dashboard.page import picture_name
from tests.support.dashboard.panels import ROWS
from tests.support.dashboard.queries import Panel, Query, Row, filled
from tests.support.dashboard.run import Run, real_run, submit

COLUMNS: Final = 3
MOST: Final = 8  # lines that a legend names
WINDOW: Final = "20s"
UNITS: Final = {"cpm": "a minute", "reqps": "a second"}
TIMES: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms"))


def _named(query: Query, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), query.legend)


def _written(value: float, unit: str) -> str:
    """As Grafana would write it."""
    if unit == "bytes":
        return f"{value / 2**20:.3g} MiB"
    if not value:
        return "0"
    size, name = next((each for each in TIMES if value >= each[0]), TIMES[-1]) if unit == "s" else (1, "")
    return f"{value / size:.3g} {name}".rstrip()


def _lines(run: Run, panel: Panel, end: float) -> Iterator[tuple[str, list[float], list[float]]]:
    for query in panel.queries:
        for series in run.prometheus.range(filled(query.expr, WINDOW), run.began, end, 2):
            times = [float(at) - run.began for at, _ in series["values"]]
            yield _named(query, series["metric"]), times, [float(value) for _, value in series["values"]]


def _bars(run: Run, panel: Panel, end: float) -> list[tuple[str, float]]:
    window = f"{round(end - run.began) + 10}s"  # with what was there when it began
    found = [
        (_named(query, series["metric"]), float(series["value"][1]))
        for query in panel.queries
        for series in run.prometheus.instant(filled(query.expr, window), end)
    ]
    return sorted(found, key=lambda bar: bar[1])


def _draw(axes: Any, run: Run, panel: Panel, end: float) -> None:
    axes.set_title(panel.title, fontsize=9, loc="left")
    axes.tick_params(labelsize=7)
    if panel.kind == "bars":
        bars = _bars(run, panel, end)
        drawn = axes.barh([name for name, _ in bars], [value for _, value in bars], color="#3274a1")
        axes.bar_label(drawn, fmt="%.0f", fontsize=7)
        axes.margins(x=0.15)
        return
    lines = [line for line in _lines(run, panel, end) if line[1]]
    if panel.kind == "stacked":
        times = sorted({at for _, found, _ in lines for at in found})
        values = [[dict(zip(found, heights, strict=True)).get(at, 0) for at in times] for _, found, heights in lines]
        axes.stackplot(times, values, labels=[name for name, _, _ in lines], alpha=0.7)
    else:
        for name, times, values in lines:
            axes.plot(times, values, label=name, linewidth=1, clip_on=False)  # one at 0 is seen
    axes.set_ylim(bottom=0)
    axes.set_ylabel(UNITS.get(panel.unit, ""), fontsize=7)
    axes.yaxis.set_major_formatter(lambda value, _: _written(value, panel.unit))
    handles, names = axes.get_legend_handles_labels()
    more = [f"and {len(names) - MOST} more"] if len(names) > MOST else []
    handles = handles[:MOST] + [mpl.lines.Line2D([], [], alpha=0) for _ in more]
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12), "ncols": 2}
    axes.legend(handles, names[:MOST] + more, fontsize=6, frameon=False, **below)


def picture(run: Run, row: Row, folder: Path, end: float) -> None:
    """Draw a row's panels."""
    lines = -(-len(row.panels) // COLUMNS)
    figure, grid = pyplot.subplots(lines, COLUMNS, figsize=(13, 3.3 * lines), squeeze=False, layout="constrained")
    for axes in grid.flat[len(row.panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid.flat, row.panels, strict=False):
        _draw(axes, run, panel, end)
    figure.savefig(folder / picture_name(row), dpi=80, pil_kwargs={"optimize": True}, metadata={"Software": None})
    pyplot.close(figure)


if __name__ == "__main__":
    mpl.use("agg")
    target = Path(sys.argv[1])
    target.mkdir(exist_ok=True)
    with TemporaryDirectory() as logs, real_run(Path(logs)) as found:
        submit(found, rounds=5, pause=1)
        time.sleep(10)
        now = time.time()
        for each in ROWS:
            picture(found, each, target, now)
