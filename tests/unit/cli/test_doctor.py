"""The output of `mpijob-webhook doctor`."""

import json
from dataclasses import replace

from tests.support.doctor_facts import HEALTHY, UNREAD, hook
from webhook.cli.doctor import DoctorReport
from webhook.installation.doctor import checks


def test_report_has_all_diagnoses() -> None:
    facts = replace(HEALTHY, **hook("validate", failurePolicy="Ignore"), rights=UNREAD, policies=UNREAD, crd=None)
    report = DoctorReport("https://api.example", "mpijob-webhook", list(checks.run(facts)))
    lines = list(report.as_text())
    assert "mpijob-webhook in namespace mpijob-webhook of the cluster at https://api.example" in lines[0]
    assert lines[-1] == "1 problem, 1 warning, 2 unknown, 4 ok"
    assert sum("cluster-admin" in line for line in lines) == 1, "a repeated fix is printed once"
    assert not report.good
    data = json.loads(json.dumps(report.as_json()))
    assert data["good"] is False
    assert {finding["check"] for finding in data["findings"]} == set(checks.CHECKS) - {"probe"}


def test_report_with_only_warnings_is_good() -> None:
    facts = replace(HEALTHY, **hook("validate", failurePolicy="Ignore"))
    assert DoctorReport("", "", list(checks.run(facts))).good
