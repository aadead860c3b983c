"""The panels and queries of the Grafana dashboards."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support import promtool
from tests.support.dashboard import FILES, boards, filled, panels
from tests.support.paths import MANIFESTS
from tests.support.prometheus import rule_groups
from webhook.api.yaml import load_all
from webhook.kit.importance import Importance
from webhook.parts.job_metrics.metrics import JOB_METRICS
from webhook.parts.standing_audit.metrics import AUDIT_METRICS
from webhook.rules import REGISTRY
from webhook.server.metrics import METRICS, Metric

TARGETS = [target for panel in panels() for target in panel["targets"]]
QUERIES = [target["expr"] for target in TARGETS]
RULES = [rule["expr"] for group in rule_groups() for rule in group["rules"]]
RECORDED = {rule["record"]: rule["expr"] for group in rule_groups() for rule in group["rules"] if "record" in rule}
OF_PODS = {"namespace", "pod"}
OF_CONTAINERS = {*OF_PODS, "container"}
FOREIGN = {
    # Metrics of the API server, and of every process: https://kubernetes.io/docs/reference/instrumentation/metrics/
    "apiserver_admission_webhook_admission_duration_seconds_bucket": {"name", "le"},
    "apiserver_admission_webhook_rejection_count": {"name", "error_type"},
    "apiserver_admission_webhook_fail_open_count": {"name"},
    "apiserver_admission_match_condition_evaluation_errors_total": {"name"},
    "process_cpu_seconds_total": set[str](),
    "process_resident_memory_bytes": set[str](),
    # Metrics of kube-state-metrics (docs/metrics/workload), of cAdvisor (docs/storage/prometheus.md) and of NVIDIA's
    # DCGM exporter
    "kube_pod_owner": {*OF_PODS, "owner_kind", "owner_name"},
    "kube_job_owner": {"namespace", "job_name", "owner_kind", "owner_name"},
    "kube_pod_info": {*OF_PODS, "node"},
    "kube_pod_status_phase": {*OF_PODS, "phase"},
    "kube_pod_container_status_restarts_total": OF_CONTAINERS,
    "kube_pod_container_status_last_terminated_reason": {*OF_CONTAINERS, "reason"},
    "kube_pod_container_resource_requests": {*OF_CONTAINERS, "resource"},
    "container_cpu_usage_seconds_total": OF_CONTAINERS,
    "container_memory_working_set_bytes": OF_CONTAINERS,
    "container_network_receive_bytes_total": OF_PODS,
    "container_network_transmit_bytes_total": OF_PODS,
    "container_fs_reads_bytes_total": OF_CONTAINERS,
    "container_fs_writes_bytes_total": OF_CONTAINERS,
    "DCGM_FI_DEV_GPU_UTIL": {*OF_CONTAINERS, "gpu"},
    "DCGM_FI_DEV_FB_USED": {*OF_CONTAINERS, "gpu"},
}
METRIC = re.compile(r"\b(?:[a-z_]+:)?(?:mpijob|training_operator|apiserver|process|kube|container|DCGM)_[\w:]+")
SCRAPED = {"pod", "instance"}
"""Labels of all metrics that a ServiceMonitor scrapes."""


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


def test_grafana_finds_the_dashboards_by_their_label() -> None:
    for file in FILES:
        (document,) = load_all(file.read_text(encoding="utf-8"))
        assert document["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert len(document["data"]) == 1


@pytest.mark.parametrize("board", boards(), ids=lambda board: str(board["uid"]))
def test_panels_have_different_ids_and_do_not_overlap(board: dict[str, Any]) -> None:
    everything = board["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    for one, next_ in pairwise(panel["gridPos"] for panel in everything):
        assert one["x"] + one["w"] <= 24
        assert next_["y"] >= one["y"] + one["h"] or next_["x"] >= one["x"] + one["w"]


def test_all_rules_whose_violation_makes_a_job_fail_are_in_the_queries_for_saved_gpus() -> None:
    fails = "|".join(rule.id for rule in REGISTRY.values() if rule.importance is Importance.FAILS)
    saved = [set(re.findall(r'rule([!=]~)"([^"]*)"', expr)) for expr in QUERIES if "rule=~" in expr or "rule!~" in expr]
    assert saved == [{("=~", fails)}, {("!~", fails)}], f"manifests/components/monitoring/dashboard.yaml: {fails}"


@pytest.mark.parametrize("expr", [*QUERIES, *RULES])
def test_queries_use_existing_metrics_and_labels(expr: str) -> None:
    names = set(METRIC.findall(expr))
    assert names
    assert names <= KNOWN.keys()
    labels = {label for selector in re.findall(r"\{([^}]*)\}", expr) for label in re.findall(r"(\w+)[!=]", selector)}
    made = set(re.findall(r'"(\w+)", "[^"]*", "\w*", "', expr))  # labels that label_replace adds
    for label in (labels | grouped(expr)) - made:
        assert any(label in KNOWN[name] | SCRAPED for name in names), label


def test_every_query_is_valid_in_prometheus(tmp_path: Path) -> None:
    rules = [{"record": f"query_{number}", "expr": filled(expr, "5m")} for number, expr in enumerate(QUERIES)]
    promtool.check_rules([{"name": "dashboard", "rules": rules}], [], tmp_path)


def test_bars_include_the_first_value_and_values_after_restarts(tmp_path: Path) -> None:
    """The four series: an existing series, a new series, a series of a restarted process, and a series that ended."""
    series = {"stays": "5+0x30 5+1x10", "comes": "_x20 3+0x20", "again": "9+0x10 9+1x10 0+1x20", "goes": "7+0x20 8x5"}
    (expr,) = (query for query in QUERIES if "mpijob_webhook_deadline_events_total[" in query)
    counted = expr.replace("mpijob_webhook_deadline_events_total", "n_total").replace("outcome", "rule")
    values = {'{rule="stays"}': 10, '{rule="comes"}': 3, '{rule="again"}': 29, '{rule="goes"}': 1}
    labelled = {f'n_total{{rule="{name}"}}': text for name, text in series.items()}
    test = promtool.case(labelled, {f"round({filled(counted, '35m')})": values}, minutes=41)
    promtool.check_rules([], [test], tmp_path)


def test_range_of_a_rate_has_several_scrapes() -> None:
    """Grafana's `$__rate_interval` is four times the query's interval, which defaults to the data source's interval."""
    (monitor,) = load_all((MANIFESTS / "components" / "monitoring" / "service-monitor.yaml").read_text())
    (interval,) = {endpoint["interval"] for endpoint in monitor["spec"]["endpoints"]}
    assert {target["interval"] for target in TARGETS} == {interval}


def test_namespace_variable_covers_all_metrics_with_a_namespace() -> None:
    (query,) = (each["query"] for each in boards()[0]["templating"]["list"] if each["name"] == "namespace")
    (names,) = re.findall(r'__name__=~"([^"]*)"', query)
    chosen = [metric for metric in (*JOB_METRICS, *AUDIT_METRICS) if re.fullmatch(names, metric.name)]
    assert [metric.name for metric in chosen] == [
        "training_operator_mpijob_created_total",
        "training_operator_mpijob_deadline_remaining_seconds",
        "mpijob_webhook_namespace_reviews_total",
        "mpijob_webhook_audit_jobs",
    ]


def test_legends_use_labels_of_their_query() -> None:
    for target in TARGETS:
        expr = target["expr"]
        named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        recorded = {label for name in RECORDED if name in expr for label in KNOWN[name]}
        assert named <= (grouped(expr) or SCRAPED) | recorded, expr


def test_every_panel_has_a_description() -> None:
    titles = [panel["title"] for panel in panels()]
    assert len(titles) == len(set(titles))
    assert all(panel["description"].endswith(".") for panel in panels())
