import io
import json
import logging
import re
from collections.abc import Iterator
from datetime import date
from http import HTTPStatus

import pytest
import yaml
from prometheus_client import generate_latest

from tests.support import jobs, promtool
from tests.support.paths import MANIFESTS
from webhook.admission import pipelines
from webhook.admission.pipelines import Decision
from webhook.cluster.view import NothingKnown
from webhook.parts.job_metrics.metrics import JOB_METRICS
from webhook.parts.standing_audit.metrics import AUDIT_METRICS
from webhook.plugins.loading import Failures
from webhook.server.limits import MAX_LOGGED_CHARACTERS
from webhook.server.log import LibraryLog, describe, make_log
from webhook.server.metrics import METRICS, PREFIX, Metric
from webhook.server.telemetry import Telemetry

POLICY = pipelines.load_policy(None)


@pytest.fixture
def stream():
    return io.BytesIO()


@pytest.fixture
def telemetry(stream):
    return Telemetry(make_log(stream))


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def value(telemetry, name, **labels):
    return telemetry.registry.get_sample_value(PREFIX + name, labels)


def validated(job, **fields):
    request = jobs.request(job, **fields)
    return request, pipelines.validate(request, policy=POLICY, view=NothingKnown(), today=date.min)


def mutated(job, **fields):
    request = jobs.request(job, **fields)
    return request, pipelines.mutate(request, policy=POLICY, view=NothingKnown())


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_metric_names_follow_prometheus_conventions(metric):
    assert re.fullmatch(r"mpijob_webhook_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.help.endswith(".")
    assert not {"namespace", "name", "user", "uid"} & set(metric.labels)


def test_metric_names_are_unique():
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_number_of_series_is_independent_of_jobs_and_users(telemetry):

    def samples():
        families = [family for family in telemetry.registry.collect() if family.name.startswith(PREFIX)]
        return sum(len(family.samples) for family in families)

    def review(number):
        job = jobs.changed({"metadata.name": f"job-{number}", "metadata.namespace": f"team-{number}"})
        telemetry.decided("mutate", *mutated(job, username=f"user-{number}"), 0.001)
        telemetry.decided("validate", *validated(job, username=f"user-{number}"), 0.001)

    review(0)
    after_one = samples()
    for number in range(1, 20):
        review(number)
    assert samples() == after_one


def test_decision_is_counted(telemetry):
    telemetry.decided("validate", *validated(jobs.changed({"Worker.replicas": 1})), 0.004)
    telemetry.decided("validate", *validated(jobs.GOOD, dryRun=True), 0.004)
    reviews = {"webhook": "validate", "operation": "CREATE"}
    assert value(telemetry, "reviews_total", decision="denied", dry_run="false", **reviews) == 1
    assert value(telemetry, "reviews_total", decision="allowed", dry_run="true", **reviews) == 1
    assert value(telemetry, "rule_results_total", rule="worker-count", action="deny") == 1
    assert value(telemetry, "review_duration_seconds_bucket", webhook="validate", le="0.0025") == 0
    assert value(telemetry, "review_duration_seconds_bucket", webhook="validate", le="0.005") == 2


def test_each_operation_of_a_patch_is_counted(telemetry):
    request, decision = mutated(jobs.GOOD)
    telemetry.decided("mutate", request, decision, 0.001)
    for injection in set(decision.authors):
        count = decision.authors.count(injection)
        assert value(telemetry, "patch_ops_total", injection=injection) == count
    # The last operation adds the annotation that lists the injections. It belongs to no injection.
    assert sum(map(decision.authors.count, set(decision.authors))) == len(decision.patch) - 1 > 1


@pytest.mark.parametrize(
    ("status", "counted"),
    [
        (HTTPStatus.BAD_REQUEST, ("bad_requests_total", {"code": "400"})),
        (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, ("bad_requests_total", {"code": "413"})),
        (HTTPStatus.SERVICE_UNAVAILABLE, ("cluster_errors_total", {"webhook": "mutate"})),
        (HTTPStatus.GATEWAY_TIMEOUT, ("deadline_exceeded_total", {"webhook": "mutate"})),
    ],
)
def test_review_without_a_decision_is_counted_by_its_cause(telemetry, status, counted):
    telemetry.refused("mutate", status, "some reason", peer="192.0.2.1")
    name, labels = counted
    assert value(telemetry, name, **labels) == 1
    others = {
        "bad_requests_total", "shed_total", "cluster_errors_total", "deadline_exceeded_total", "internal_errors_total",
    } - {name}  # fmt: skip
    lines = generate_latest(telemetry.registry).decode().splitlines()
    counts = [line for line in lines if line.startswith(tuple(PREFIX + other + "{" for other in others))]
    assert {line.rpartition(" ")[2] for line in counts} <= {"0.0"}


def test_series_used_by_alerts_exist_from_the_start(telemetry):
    """Without a start at 0, the first failure would not be an increase for Prometheus."""
    expressions = " ".join(rule["expr"] for rule in alert_rules())
    telemetry.plugins((), Failures({("rule", "acme-no"): 0}, {}))
    telemetry.policies_in_force("0123", custom_rules=["custom/team"])
    text = generate_latest(telemetry.registry).decode()
    counters = set(re.findall(r"mpijob_webhook_[a-z_]+_total", expressions))
    assert counters
    for counter in counters:
        assert f"\n{counter}{{" in text


def alert_rules():
    (document,) = yaml.safe_load_all((MANIFESTS / "components/monitoring/alerts.yaml").read_text(encoding="utf-8"))
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


def test_only_the_policy_in_force_has_a_series(telemetry):
    telemetry.policies_in_force("0123", ["current", "last-good", "current"])
    assert value(telemetry, "policy_documents", state="current") == 2
    assert value(telemetry, "policy_documents", state="last-good") == 1
    telemetry.policies_in_force("4567", ["current"])
    assert value(telemetry, "policy_info", hash="4567") == 1
    assert value(telemetry, "policy_info", hash="0123") is None
    assert value(telemetry, "policy_documents", state="last-good") == 0
    assert value(telemetry, "policy_reloads_total", result="broken") == 1
    assert value(telemetry, "policy_reloads_total", result="good") == 1


def test_exemption_is_counted_and_logged(telemetry, stream):
    request, decision = validated(jobs.changed({"Worker.replicas": 1}))
    finding = decision.denied.pop()
    decision.exempted.append((finding, "OPS-42"))
    telemetry.decided("validate", request, decision, 0)
    assert value(telemetry, "exemptions_total", rule="worker-count") == 1
    assert lines(stream)[0]["exempted"] == ["worker-count"]


def test_log_line_of_a_decision_has_all_fields(telemetry, stream):
    request, decision = mutated(jobs.GOOD)
    telemetry.decided("mutate", request, decision, 0.0012345)
    (line,) = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z", line.pop("time"))
    assert line == {
        "level": "info",
        "event": "decision",
        "webhook": "mutate",
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "operation": "CREATE",
        "namespace": "team-a",
        "name": "train",
        "user": "alice",
        "dry_run": False,
        "allowed": True,
        "denied": [],
        "warned": [],
        "audited": [],
        "exempted": [],
        "injected": list(dict.fromkeys(decision.authors)),
        "skipped": "",
        "policy": "",
        "duration_ms": 1.234,
    }
    assert stream.getvalue().startswith(b'{"time":"')


def test_log_line_of_a_rejection_has_each_rule_once(telemetry, stream):
    telemetry.decided("validate", *validated(jobs.changed({"Worker.replicas": 1, "metadata.name": "A B"})), 0)
    (line,) = lines(stream)
    assert not line["allowed"]
    assert "worker-count" in line["denied"]
    assert len(set(line["denied"])) == len(line["denied"])


HOSTILE = 'x"\n\r\t\x1b[31m\u2028\x00{"level":"error"}' + "y" * 5000


@pytest.mark.parametrize("field", ["user", "namespace", "name", "uid", "skipped"])
def test_user_text_in_the_log_is_one_short_line(telemetry, stream, field):
    request = jobs.request(jobs.GOOD, namespace="", username="alice")
    decision = Decision(name="train")
    if field == "user":
        request.user_info.username = HOSTILE
    else:
        setattr(decision if field in {"name", "skipped"} else request, field, HOSTILE)
    telemetry.decided("validate", request, decision, 0)
    assert stream.getvalue().count(b"\n") == 1
    assert b"\x1b" not in stream.getvalue()
    (line,) = lines(stream)
    assert line[field] == HOSTILE[:MAX_LOGGED_CHARACTERS]
    assert line["level"] == "info"


def test_log_drops_lines_below_its_level(stream):
    telemetry = Telemetry(make_log(stream, "warning"))
    telemetry.decided("validate", *validated(jobs.GOOD), 0)
    telemetry.refused("validate", HTTPStatus.BAD_REQUEST, "some reason", peer=None)
    assert [line["event"] for line in lines(stream)] == ["refused"]
    # The duration of a review without a verdict is measured too, because its client also waited.
    assert value(telemetry, "review_duration_seconds_count", webhook="validate") == 2


def failing():
    try:
        {"a": 1}["secret"]
    except KeyError as error:
        raise ValueError("secret") from error


def test_error_is_described_without_its_text(telemetry, stream):
    with pytest.raises(ValueError, match="secret") as caught:
        failing()
    description = describe(caught.value)
    assert (description["error"], description["cause"]) == ("builtins.ValueError", "builtins.KeyError")
    assert description["traceback"][-1].endswith(" failing")
    telemetry.failed("mutate", caught.value)
    assert value(telemetry, "internal_errors_total", webhook="mutate") == 1
    assert b"secret" not in stream.getvalue()
    assert lines(stream)[0]["level"] == "error"


def test_libraries_use_the_same_log_without_error_texts(stream):
    logger = logging.Logger("aiohttp.server")
    logger.addHandler(LibraryLog(make_log(stream)))
    try:
        failing()
    except ValueError:
        logger.exception("handling %s", "a request")
    logger.warning("odd")
    first, second = lines(stream)
    assert (first["level"], first["event"], first["logger"]) == ("error", "library", "aiohttp.server")
    assert (first["message"], first["error"]) == ("handling a request", "builtins.ValueError")
    assert (second["level"], second["message"]) == ("warning", "odd")
    assert b"secret" not in stream.getvalue()


def refusal(telemetry, changes, **fields):
    telemetry.decided("validate", *validated(jobs.changed(changes), **fields), 0.001)


def test_gpus_of_rejected_jobs_are_counted_once(telemetry):
    """The GPUs are counted under the most severe rule, so that a sum over the rules is correct."""
    changes = {"Worker.replicas": 1, "spec.slotsPerWorker": 0}
    denied = validated(jobs.changed(changes))[1].denied
    assert len({finding.rule for finding in denied}) > 1
    refusal(telemetry, changes)
    worst = min(denied, key=lambda finding: finding.importance).rule
    family = {
        tuple(sample.labels.values()): sample.value
        for metric in telemetry.registry.collect()
        for sample in metric.samples
        if sample.name == PREFIX + "refused_gpus_total"
    }
    assert family == {(worst, "nvidia.com/gpu"): 2}


@pytest.mark.parametrize("fields", [{"dryRun": True}, {"operation": "UPDATE"}])
def test_gpus_are_counted_only_for_rejected_creations(telemetry, fields):
    if "operation" in fields:
        fields = {**fields, "oldObject": jobs.GOOD}
    refusal(telemetry, {"Worker.replicas": 1}, **fields)
    assert value(telemetry, "rule_results_total", rule="worker-count", action="deny") == 1
    assert value(telemetry, "refused_gpus_total", rule="worker-count", resource="nvidia.com/gpu") is None


def test_gpus_of_one_job_are_limited(telemetry):
    refusal(telemetry, {"Worker.replicas": 2_000_000})
    assert value(telemetry, "refused_gpus_total", rule="worker-count", resource="nvidia.com/gpu") == 10_000


ALL = (*METRICS, *JOB_METRICS, *AUDIT_METRICS)


def exposed(metric: Metric) -> Iterator[str]:
    """A metric in the exposed format with one sample, because promtool ignores metrics without samples."""
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    labels = [f'{label}="x"' for label in metric.labels]
    if metric.kind == "histogram":
        bucket = ",".join([*labels, 'le="+Inf"'])
        yield f"{metric.name}_bucket{{{bucket}}} 1"
        yield from (f"{metric.name}_{part}{{{','.join(labels)}}} 1" for part in ("sum", "count"))
    else:
        yield f"{metric.name}{{{','.join(labels)}}} 1"


def test_promtool_accepts_the_metrics() -> None:
    text = "\n".join(line for metric in ALL for line in exposed(metric))
    assert promtool.run("check", "metrics", text=f"{text}\n") == ""


def test_units_of_times_are_in_metric_names() -> None:
    """Promtool does not check this convention: https://prometheus.io/docs/practices/naming/."""
    for metric in ALL:
        words = metric.name.split("_")
        assert ("since 1970" in metric.help) == ("_timestamp_seconds" in metric.name), metric.name
        assert not {"duration", "age", "wait", "remaining"} & set(words) or words[-1] == "seconds", metric.name


def test_every_exposed_metric_is_documented() -> None:
    telemetry = Telemetry()
    telemetry.metrics.observe("ssh_key_duration_seconds", 0.1, "ed25519")
    families = {line.split()[2] for line in generate_latest(telemetry.registry).decode().splitlines() if line[0] == "#"}
    assert {name for name in families if not name.startswith("process_")} == {metric.name for metric in METRICS}
