"""Grafana's JSON of the panels, in a ConfigMap that Grafana's sidecar finds by its label."""

import itertools
import json
from string import ascii_uppercase
from typing import Any, Final

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef, VariableRefresh

from tests.support.dashboard.panels import ROWS
from tests.support.dashboard.queries import NAMESPACES, Panel, Query
from tests.support.paths import MANIFESTS
from webhook import PROGRAM

FILE: Final = MANIFESTS / "components" / "monitoring" / "dashboard.yaml"
NOTICE: Final = "# Written by `make dashboard` out of tests/support/dashboard: changes here are lost.\n"
SOURCE: Final = DataSourceRef(type_val="prometheus", uid="$datasource")
WIDTH, HEIGHT = 8, 8
# That of the ServiceMonitor. Grafana would take that of its data source, 15 s: a rate over four of these may see one
# sample, of which there is no rate.
SCRAPED: Final = "30s"


def manifest() -> str:
    """The text of the component's file."""
    lines = json.dumps(built(), indent=1, sort_keys=True).splitlines()
    text = "\n".join(f"    {line}" for line in lines)
    return f"""\
{NOTICE}apiVersion: v1
kind: ConfigMap
metadata:
  name: mpijob-webhook-dashboard
  namespace: mpijob-webhook
  labels:
    app.kubernetes.io/name: mpijob-webhook
    grafana_dashboard: "1"
data:
  mpijob-webhook.json: |
{text}
"""


def built() -> Any:
    """The dashboard as Grafana reads it."""
    board = (
        dashboard.Dashboard("MPIJobs: admission, jobs and GPUs")
        .uid(PROGRAM)
        .description("What mpijob-webhook refuses, injects and sees. Its metrics: docs/reference/metrics.md.")
        .tags(["mpijob", "admission"])
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-6h", "now")
        .refresh("1m")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("namespace")
            .label("Namespace")
            .datasource(SOURCE)
            .query(f"label_values({NAMESPACES}, namespace)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    )
    numbers = itertools.count(1)
    for row in ROWS:
        board.with_row(dashboard.Row(row.title).id(next(numbers)))
        for panel in row.panels:
            board.with_panel(_panel(panel, next(numbers)))
    return json.loads(json.dumps(board.build(), cls=JSONEncoder))


def _panel(panel: Panel, number: int) -> Any:
    found: Any = bargauge.Panel() if panel.kind == "bars" else timeseries.Panel()
    found.id(number).title(panel.title).description(panel.text).unit(panel.unit).datasource(SOURCE).span(WIDTH).height(
        HEIGHT
    )
    for index, query in enumerate(panel.queries):
        found.with_target(_target(query, instant=panel.kind == "bars").ref_id(ascii_uppercase[index]))
    if panel.kind == "bars":
        return found.display_mode(BarGaugeDisplayMode.BASIC).orientation(VizOrientation.HORIZONTAL)
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
    found.legend(legend.show_legend(True)).min(0)
    if panel.kind == "stacked":
        found.stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(40)
    return found


def _target(query: Query, *, instant: bool) -> prometheus.Dataquery:
    target = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).datasource(SOURCE).interval(SCRAPED)
    return target.instant() if instant else target.range()
