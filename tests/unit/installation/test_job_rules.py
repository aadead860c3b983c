"""The recording rules that combine the replicas' job metrics into one number: by Prometheus' own promtool."""

import re
from pathlib import Path
from typing import Any

from tests.support import promtool
from tests.support.paths import MANIFESTS
from webhook.api.yaml import load_all
from webhook.parts.job_metrics.metrics import JOB_METRICS
from webhook.server.metrics import JOB_PREFIX

CREATED = f"{JOB_PREFIX}created_total"
RUNNING = f"{JOB_PREFIX}running"
# Every replica counts all jobs, one each minute: after an hour the first is replaced by one that starts at 0.
SERIES = {
    f'{CREATED}{{namespace="team-a",pod="first"}}': "100+1x60",
    f'{CREATED}{{namespace="team-a",pod="second"}}': "_x50 0+1x70",
    f'{RUNNING}{{namespace="team-a",pod="first"}}': "3x60",
    f'{RUNNING}{{namespace="team-a",pod="second"}}': "_x50 3x70",
}
RATE = "namespace:training_operator_mpijob_created:rate5m"


def groups() -> list[dict[str, Any]]:
    (document,) = load_all((MANIFESTS / "components/monitoring/job-rules.yaml").read_text())
    found: list[dict[str, Any]] = document["spec"]["groups"]
    return found


def test_rules_are_about_metrics_that_exist() -> None:
    ours = {metric.name: set(metric.labels) for metric in JOB_METRICS}
    for rule in (rule for group in groups() for rule in group["rules"]):
        ((labels, name),) = re.findall(rf"^max by \((.+?)\) .*\b({JOB_PREFIX}\w+)", rule["expr"])
        assert set(labels.split(", ")) == ours[name]
        assert rule["record"] not in ours


def test_replicas_that_come_and_go_change_no_number(tmp_path: Path) -> None:
    expected = [
        (f"{RUNNING}_total", f'{RUNNING}_total{{namespace="team-a"}}', 3),
        (f"round(avg_over_time({RATE}[90m]) * 5400)", '{namespace="team-a"}', 90),
    ]
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in SERIES.items()],
        "promql_expr_test": [
            {"expr": expression, "eval_time": "100m", "exp_samples": [{"labels": labels, "value": value}]}
            for expression, labels, value in expected
        ],
    }
    promtool.check_rules(groups(), [test], tmp_path)
