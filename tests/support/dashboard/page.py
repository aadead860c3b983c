"""The page about the dashboard: each row's picture, and what its panels show."""

import re
from collections.abc import Iterator
from typing import Final

from tests.support.dashboard.panels import ROWS
from tests.support.dashboard.queries import Row
from tests.support.paths import DOCS

PAGE: Final = DOCS / "dashboard.md"
INTRODUCTION: Final = """\
<!-- Written by `make dashboard` out of tests/support/dashboard: changes here are lost. -->
# Dashboard

The component `monitoring` has a Grafana dashboard in the ConfigMap `mpijob-webhook-dashboard`, with the label
`grafana_dashboard: "1"`. The sidecar of Grafana's Helm charts loads it where it looks into the namespace
`mpijob-webhook` (`sidecar.dashboards.searchNamespace: ALL`). Elsewhere import its JSON:

```bash
kubectl -n mpijob-webhook get configmap mpijob-webhook-dashboard \\
  -o jsonpath='{.data.mpijob-webhook\\.json}' > dashboard.json
```

- What is told by namespace, and all of jobs, needs the component `job-metrics`; deadlines need `deadline-events`,
  and what breaks the policy of today `audit`.
- "What the API server waits" needs the API server's own metrics in the same Prometheus, "Created, succeeded, failed"
  and "Running and waiting" the recording rules of the component.
- Bars count what came in the time that is looked at, from the first one on. Lines are rates: of what comes for the
  first time they miss one, as Prometheus knows no step to it from nothing.

Every query is run by a test on a real Prometheus that has scraped two real replicas. The pictures are what it answered
in such a run, on a busy machine: three teams, a job a second, seconds on the axis. They show what there is to see; how
fast the service is stands in [benchmarks.md](benchmarks.md)."""


def picture_name(row: Row) -> str:
    """What the row's picture is called."""
    return re.sub(r"\W+", "-", row.title.lower()) + ".png"


def page() -> str:
    """The text of docs/dashboard.md."""
    return "\n".join([INTRODUCTION, *(line for row in ROWS for line in _section(row))]) + "\n"


def _section(row: Row) -> Iterator[str]:
    yield f"\n## {row.title}\n"
    yield f"![{', '.join(panel.title for panel in row.panels)}](dashboard/{picture_name(row)})\n"
    yield "| Panel | Shows |"
    yield "| --- | --- |"
    for panel in row.panels:
        yield f"| {panel.title} | {panel.text} |"
