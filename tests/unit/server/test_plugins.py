"""Reports about plug-ins in /readyz, the metrics and the log. The service is ready in any case."""

from pathlib import Path

from prometheus_client import generate_latest

from tests.support import jobs
from tests.support.live_service import live
from tests.support.plugins import RULE, SAYS_NO, install, taken_in

GOOD = jobs.body(jobs.GOOD)


def test_broken_plugin_is_reported_and_the_service_is_ready(tmp_path: Path) -> None:
    modules = {
        "acme_no": RULE.format(id="acme-no", body=SAYS_NO),
        "acme_bad": "import no_such_module",
        "acme_fails": RULE.format(id="acme-fails", body="raise KeyError(job.metadata.name)\n    yield"),
    }
    points = {name.replace("_", "-"): f"{name}:check" for name in modules}
    install(tmp_path, "acme", modules, {"rules": points})
    with taken_in(tmp_path, "acme"), live() as service:
        readiness, telemetry = service.service.readiness, service.service.telemetry
        broken = (
            "[!]plug-in acme: rule acme-bad: cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"
        )
        assert broken in readiness.report().splitlines()
        for _ in range(2):
            answer = service.post("/validate-mpijob", GOOD).answer
            assert [cause["message"] for cause in answer["status"]["details"]["causes"]] == [
                "I say no. Give up. [acme-no]"
            ]
        assert readiness.ready
        assert "rule acme-fails failed 2 times, last with KeyError in acme_fails.py:11" in readiness.report()
        metrics = generate_latest(telemetry.registry).decode()
        assert 'mpijob_webhook_plugins{plugin="acme",state="broken",version="1.0"} 1.0' in metrics
        assert 'mpijob_webhook_plugin_failures_total{entry="acme-fails",kind="rule"} 2.0' in metrics
        assert 'mpijob_webhook_plugin_failures_total{entry="acme-no",kind="rule"} 0.0' in metrics
        assert 'rule_results_total{action="deny",rule="acme-no"} 2.0' in metrics
        (line,) = service.log("plug-in")
        assert (line["level"], line["plugin"], line["rules"]) == ("warning", "acme", ["acme-fails", "acme-no"])
        (line,) = service.log("plug-in failed")
        assert (line["name"], line["error"]) == ("acme-fails", "builtins.KeyError")
        assert line["traceback"][-1].endswith("acme_fails.py:11 check")
        assert f"'{jobs.GOOD['metadata']['name']}'" not in str(line), "an exception's text may quote a job"
