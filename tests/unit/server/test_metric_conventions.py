"""Names, kinds and units of all metrics are as Prometheus' own linter wants them."""

from collections.abc import Iterator

from prometheus_client import generate_latest

from tests.support import promtool
from webhook.server.metrics import AUDIT_METRICS, JOB_METRICS, METRICS, Metric
from webhook.server.telemetry import Telemetry

ALL = (*METRICS, *JOB_METRICS, *AUDIT_METRICS)


def exposed(metric: Metric) -> Iterator[str]:
    """A metric as it is read, with one sample: promtool overlooks those that have none."""
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    labels = [f'{label}="x"' for label in metric.labels]
    if metric.kind == "histogram":
        bucket = ",".join([*labels, 'le="+Inf"'])
        yield f"{metric.name}_bucket{{{bucket}}} 1"
        yield from (f"{metric.name}_{part}{{{','.join(labels)}}} 1" for part in ("sum", "count"))
    else:
        yield f"{metric.name}{{{','.join(labels)}}} 1"


def test_promtool_has_nothing_against_them() -> None:
    text = "\n".join(line for metric in ALL for line in exposed(metric))
    assert promtool.run("check", "metrics", text=f"{text}\n") == ""


def test_a_moment_is_a_timestamp_and_a_time_is_in_seconds() -> None:
    """What promtool does not see: https://prometheus.io/docs/practices/naming/."""
    for metric in ALL:
        words = metric.name.split("_")
        assert ("since 1970" in metric.help) == ("_timestamp_seconds" in metric.name), metric.name
        assert not {"duration", "age", "wait", "remaining"} & set(words) or words[-1] == "seconds", metric.name


def test_nothing_is_exposed_that_is_not_documented() -> None:
    telemetry = Telemetry()
    telemetry.metrics.observe("ssh_key_duration_seconds", 0.1, "ed25519")
    families = {line.split()[2] for line in generate_latest(telemetry.registry).decode().splitlines() if line[0] == "#"}
    assert {name for name in families if not name.startswith("process_")} == {metric.name for metric in METRICS}
