"""After a run of jobs, a real Prometheus has results for the dashboard, the alerts and the recording rules."""

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from urllib.error import HTTPError

import pytest

from tests.support.dashboard import EMPTY, filled, panels
from tests.support.prometheus import rule_groups
from tests.support.rare import rare
from tests.support.scraped_run import Run, real_run, submit

pytestmark = [rare, pytest.mark.cluster, pytest.mark.timeout(300)]

QUERIES = [
    (panel["title"], target["legendFormat"], target["expr"]) for panel in panels() for target in panel["targets"]
]
RULES = [rule for group in rule_groups() for rule in group["rules"]]
WINDOW = "2m"
# Alerts whose expression, without its threshold, has no result in a healthy cluster. The values are the reasons.
WITHOUT_ANSWER = {
    "MPIJobWebhookDown": "absent() has no result for existing series",
    "MPIJobWebhookCallsFail": "the API server has the counter only after the first rejected call",
    "MPIJobWebhookFailsOpen": "the API server has the counter only after the first ignored failure",
    "MPIJobWebhookPluginBroken": "there is no plug-in",
    "MPIJobWebhookInstallation": "nothing is missing",
    "MPIJobWebhookConditionErrors": "the API server has the counter only after the first error",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with all kinds of jobs. Some jobs have reached their time limit, and Prometheus has scraped the metrics."""
    with real_run(tmp_path_factory.mktemp("prometheus-logs")) as running:
        submit(running, rounds=2, pause=0.1)
        over_limit = 'sum(training_operator_mpijob_failed_total{reason="DeadlineExceeded"}) > 0'
        running.cluster.wait_for("a job to reach its limit", lambda: running.prometheus.instant(over_limit), timeout=60)
        for title, legend, expr in QUERIES:
            if legend not in EMPTY:
                running.cluster.wait_for(f"{title}: {expr}", partial(numbers_or_submit, running, expr), timeout=60)
        yield running


def numbers_or_submit(run: Run, expr: str) -> list[float]:
    """The values now. If there are none, submit jobs again, because a rate needs two samples."""
    found = numbers(run, expr)
    if not found:
        submit(run, rounds=1, pause=0.1)
    return found


def numbers(run: Run, expr: str) -> list[float]:
    """The finite values of the expression now. A panel cannot show infinite values and NaN."""
    try:
        found = run.prometheus.instant(filled(expr, WINDOW))
    except HTTPError as error:
        raise AssertionError(f"{expr}: {error.read().decode()}") from None
    return [number for number in (float(each["value"][1]) for each in found) if math.isfinite(number)]


def test_every_panel_has_data(run: Run) -> None:
    without = {legend for _, legend, expr in QUERIES if not numbers(run, expr)}
    assert without == EMPTY.keys()


def test_every_recording_rule_has_a_result(run: Run) -> None:
    recorded = [rule["record"] for rule in RULES if "record" in rule]
    assert [name for name in recorded if not numbers(run, name)] == []


def test_series_used_by_alerts_exist(run: Run) -> None:
    alerts = {rule["alert"]: rule["expr"] for rule in RULES if "alert" in rule}
    compared = {name: re.sub(r"\s*(>|==|<) [\d. *]+$", "", expr) for name, expr in alerts.items()}
    assert [name for name, expr in alerts.items() if compared[name] == expr] == ["MPIJobWebhookDown"]
    # The expressions look back one minute. The run is shorter than a minute.
    seconds = {name: expr.replace(":1m]", ":1s]") for name, expr in compared.items()}
    assert {name for name, expr in seconds.items() if not numbers(run, expr)} <= WITHOUT_ANSWER.keys()


def test_no_alert_fires(run: Run) -> None:
    assert [each for each in run.prometheus.ask("alerts")["alerts"] if each["state"] == "firing"] == []


def errors(run: Run) -> set[str]:
    """Prometheus' errors in rules and scrapes."""
    rules = [rule for group in run.prometheus.ask("rules")["groups"] for rule in group["rules"]]
    assert len(rules) == len(RULES)
    targets = run.prometheus.ask("targets")["activeTargets"]
    return {each["lastError"] for each in (*rules, *targets) if each.get("lastError")}


def test_prometheus_accepts_all_rules_and_metrics(run: Run) -> None:
    with suppress(TimeoutError):  # on a busy machine, a scrape may time out and the next one succeed
        run.cluster.wait_for("Prometheus to have no errors", lambda: not errors(run))
    assert errors(run) == set()
