"""The dashboard: as the code makes it, and every query about metrics and labels that exist."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support import promtool
from tests.support.dashboard import build, page
from tests.support.dashboard.panels import ROWS
from tests.support.dashboard.queries import NAMESPACES, filled, in_all
from tests.support.paths import DOCS, MANIFESTS
from tests.support.prometheus import rule_groups
from webhook.api.yaml import load_all
from webhook.server.audit_telemetry import AUDIT_METRICS
from webhook.server.job_telemetry import JOB_METRICS
from webhook.server.metrics import METRICS, Metric

QUERIES = [query.expr for row in ROWS for panel in row.panels for query in panel.queries]
RULES = [rule["expr"] for group in rule_groups() for rule in group["rules"]]
RECORDED = {rule["record"]: rule["expr"] for group in rule_groups() for rule in group["rules"] if "record" in rule}
# Of the API server, and of every process: https://kubernetes.io/docs/reference/instrumentation/metrics/
FOREIGN = {
    "apiserver_admission_webhook_admission_duration_seconds_bucket": {"name", "le"},
    "apiserver_admission_webhook_rejection_count": {"name", "error_type"},
    "apiserver_admission_webhook_fail_open_count": {"name"},
    "apiserver_admission_match_condition_evaluation_errors_total": {"name"},
    "process_cpu_seconds_total": set[str](),
    "process_resident_memory_bytes": set[str](),
}
SCRAPED = {"pod", "instance"}
"""Labels that everything has which is scraped by a ServiceMonitor."""


def series(metric: Metric) -> dict[str, set[str]]:
    labels = set(metric.labels)
    if metric.kind != "histogram":
        return {metric.name: labels}
    plain = {f"{metric.name}_{part}": labels for part in ("sum", "count")}
    return {**plain, f"{metric.name}_bucket": {*labels, "le"}}


def grouped(expr: str) -> set[str]:
    return {label for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", expr) for label in labels.split(", ")}


KNOWN = {
    **FOREIGN,
    **{name: labels for metric in (*METRICS, *JOB_METRICS, *AUDIT_METRICS) for name, labels in series(metric).items()},
    **{name: grouped(expr) for name, expr in RECORDED.items()},
}


def shown() -> Any:
    (document,) = load_all(build.FILE.read_text(encoding="utf-8"))
    assert document["metadata"]["labels"]["grafana_dashboard"] == "1"
    return json.loads(document["data"]["mpijob-webhook.json"])


def test_the_dashboard_is_as_the_code_makes_it() -> None:
    assert build.FILE.read_text(encoding="utf-8") == build.manifest(), "run `make dashboard`"
    panels = shown()["panels"]
    assert [target["expr"] for panel in panels for target in panel.get("targets", ())] == QUERIES
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_page_is_as_the_code_makes_it_and_has_a_picture_of_each_row() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run `make dashboard`"
    drawn = {path.name for path in (DOCS / "dashboard").iterdir()}
    assert drawn == {page.picture_name(row) for row in ROWS}, "run `make dashboard-pictures`"


def test_panels_stand_beside_or_below_each_other() -> None:
    places = [panel["gridPos"] for panel in shown()["panels"]]
    for one, next_ in pairwise(places):
        assert one["x"] + one["w"] <= 24
        assert next_["y"] >= one["y"] + one["h"] or next_["x"] >= one["x"] + one["w"]


@pytest.mark.parametrize("expr", [*QUERIES, *RULES])
def test_queries_are_about_metrics_and_labels_that_exist(expr: str) -> None:
    names = set(re.findall(r"\b(?:[a-z_]+:)?(?:mpijob_webhook|training_operator|apiserver|process)_[\w:]+", expr))
    assert names
    assert names <= KNOWN.keys()
    labels = {label for selector in re.findall(r"\{([^}]*)\}", expr) for label in re.findall(r"(\w+)[!=]", selector)}
    for label in labels | grouped(expr):
        assert any(label in KNOWN[name] | SCRAPED for name in names), label


def test_prometheus_can_read_every_query(tmp_path: Path) -> None:
    rules = [{"record": f"query_{number}", "expr": filled(expr, "5m")} for number, expr in enumerate(QUERIES)]
    promtool.check_rules([{"name": "dashboard", "rules": rules}], [], tmp_path)


def test_bars_count_from_the_first_one_on_and_over_restarts(tmp_path: Path) -> None:
    """Of a series that was there, of one that came, of one whose process was started again, and of one that went."""
    series = {"stays": "5+0x30 5+1x10", "comes": "_x20 3+0x20", "again": "9+0x10 9+1x10 0+1x20", "goes": "7+0x20 8x5"}
    test = {
        "interval": "1m",
        "input_series": [{"series": f'n_total{{rule="{name}"}}', "values": text} for name, text in series.items()],
        "promql_expr_test": [
            {
                "expr": f"round({filled(in_all('n_total', 'rule'), '35m')})",
                "eval_time": "41m",
                "exp_samples": [
                    {"labels": f'{{rule="{name}"}}', "value": value}
                    for name, value in (("stays", 10), ("comes", 3), ("again", 29), ("goes", 1))
                ],
            }
        ],
    }
    promtool.check_rules([], [test], tmp_path)


def test_a_rate_looks_at_more_than_one_scrape() -> None:
    """Grafana's `$__rate_interval` is four intervals of the query, or of its data source, which knows nothing of us."""
    (monitor,) = load_all((MANIFESTS / "components" / "monitoring" / "service-monitor.yaml").read_text())
    (interval,) = {endpoint["interval"] for endpoint in monitor["spec"]["endpoints"]}
    assert {target["interval"] for panel in shown()["panels"] for target in panel.get("targets", ())} == {interval}


def test_the_namespaces_to_choose_from_are_those_of_all_metrics_that_have_one() -> None:
    names = re.findall(r'__name__=~"(.*)"', NAMESPACES)[0]
    chosen = [metric for metric in (*JOB_METRICS, *AUDIT_METRICS) if re.fullmatch(names, metric.name)]
    assert [metric.name for metric in chosen] == [
        "training_operator_mpijob_created_total",
        "training_operator_mpijob_deadline_remaining_seconds",
        "mpijob_webhook_namespace_reviews_total",
        "mpijob_webhook_audit_jobs",
    ]


def test_legends_name_labels_that_the_answer_has() -> None:
    for query in (query for row in ROWS for panel in row.panels for query in panel.queries):
        named = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
        recorded = {label for name in RECORDED if name in query.expr for label in KNOWN[name]}
        assert named <= (grouped(query.expr) or SCRAPED) | recorded, query


def test_a_panel_says_what_it_shows() -> None:
    titles = [panel.title for row in ROWS for panel in row.panels]
    assert len(titles) == len(set(titles))
    assert all(panel.text.endswith(".") for row in ROWS for panel in row.panels)
