"""promtool of Prometheus tests the thresholds of the alerts."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import promtool
from tests.support.prometheus import rule_groups

NEVER = "_x60"
OURS = "mpijob_webhook_"
HOOK = 'name="validate.mpijob.training.openshift.io"'
OTHER = 'name="somebody.example.com"'
OF_CALLS = "apiserver_admission_webhook_admission_duration_seconds_bucket"


class Case(NamedTuple):
    """Series in promtool's notation, with one value per minute, and whether the alert fires after `minutes`."""

    alert: str
    series: dict[str, str]
    minutes: int
    fires: bool


def slow(labels: str, soon: int, late: int) -> dict[str, str]:
    """Calls with these labels. Per minute, `soon` calls take under a second, and `late` calls take one to two."""
    buckets = {"1": soon, "2": soon + late, "+Inf": soon + late}
    return {f'{OF_CALLS}{{{labels},le="{bound}"}}': f"0+{count}x60" for bound, count in buckets.items()}


def pairs(alert: str, series: str, *, above: str, below: str, minutes: int) -> list[Case]:
    """Three cases of an alert. With `above` it fires after `minutes`, not earlier. With `below` it never fires."""
    return [
        Case(alert, {series: above}, minutes, fires=True),
        Case(alert, {series: above}, minutes - 2, fires=False),
        Case(alert, {series: below}, 50, fires=False),
    ]


def grows(alert: str, series: str, *, minutes: int = 7) -> list[Case]:
    """The cases of an alert that fires while a counter grows."""
    return pairs(alert, series, above="0+1x60", below="7x60", minutes=minutes)


def is_one(alert: str, series: str, *, minutes: int = 6) -> list[Case]:
    """The cases of an alert that fires while a gauge is 1, and does not fire while it is 0."""
    return pairs(alert, series, above="1x60", below="0x60", minutes=minutes)


def gpu(number: str) -> str:
    return f'mpijob_gpu_utilization{{namespace="team-a",job_name="train",pod="train-worker-0",gpu_id="{number}"}}'


INFO = f'{OURS}build_info{{pod="a"}}'
CASES = [
    *pairs("MPIJobWebhookDown", "other", above="1x60", below=NEVER, minutes=6)[:2],
    Case("MPIJobWebhookDown", {INFO: "1x60"}, 50, fires=False),
    *pairs("MPIJobWebhookSingleReplica", INFO, above="1x60", below=NEVER, minutes=16),
    Case("MPIJobWebhookSingleReplica", {INFO: "1x60", f'{OURS}build_info{{pod="b"}}': "1x60"}, 50, fires=False),
    *grows("MPIJobWebhookErrors", f'{OURS}internal_errors_total{{webhook="validate"}}'),
    *(
        case
        for name in ("shed_total", "deadline_exceeded_total")
        for case in grows("MPIJobWebhookOverloaded", f'{OURS}{name}{{webhook="validate"}}')
        for case in [
            case._replace(
                series={f"{OURS}shed_total{{x='y'}}": "0x60", f"{OURS}deadline_exceeded_total{{x='y'}}": "0x60"}
                | case.series
            )
        ]
    ),
    *grows("MPIJobWebhookConnectionsRefused", f'{OURS}connections_refused_total{{reason="full"}}'),
    Case(
        "MPIJobWebhookConnectionsRefused",
        {f'{OURS}connections_refused_total{{reason="silent"}}': "0+9x60"},
        50,
        fires=False,
    ),
    *is_one("MPIJobWebhookPolicyBroken", f'{OURS}policy_documents{{state="broken"}}'),
    Case("MPIJobWebhookPolicyBroken", {f'{OURS}policy_documents{{state="current"}}': "9x60"}, 50, fires=False),
    *is_one("MPIJobWebhookPluginBroken", f'{OURS}plugins{{plugin="acme",state="broken"}}'),
    Case("MPIJobWebhookPluginBroken", {f'{OURS}plugins{{plugin="acme",state="in force"}}': "1x60"}, 50, fires=False),
    *grows("MPIJobWebhookPluginBroken", f'{OURS}plugin_failures_total{{kind="rule",entry="acme-no"}}'),
    *grows("MPIJobWebhookCustomRuleFails", f'{OURS}own_rule_faults_total{{rule="custom/team"}}'),
    *(
        Case(
            "MPIJobWebhookPoliciesDiffer",
            {f'{OURS}policy_info{{hash="{each}",pod="{pod}"}}': "1x60" for pod, each in enumerate(hashes)},
            at,
            fires=fires,
        )
        for hashes, at, fires in (("xy", 11, True), ("xy", 9, False), ("xx", 50, False))
    ),
    *(
        Case(
            "MPIJobWebhookStale",
            {
                f'{OURS}cache_age_seconds{{pod="a",kind="pods"}}': f"{age}x60",
                f'{OURS}cache_synced{{pod="a",kind="pods"}}': f"{synced}x60",
            },
            50,
            fires=fires,
        )
        for age, synced, fires in ((151, 1, True), (150, 1, False), (900, 0, False))
    ),
    *is_one("MPIJobWebhookKindUnknown", f'{OURS}cache_faulty{{kind="pods"}}'),
    *(
        Case(
            "MPIJobWebhookInstallation",
            {f'{OURS}configuration_concerns{{concern="{concern}"}}': "1x60"},
            6,
            fires=fires,
        )
        for concern, fires in (("configuration-missing", True), ("right-essential", True), ("right-missing", False))
    ),
    *is_one("MPIJobWebhookPoliciesUnread", f'{OURS}policies_unread{{pod="a"}}'),
    *grows("MPIJobWebhookLedgerUnavailable", f'{OURS}quota_ledger_total{{outcome="unavailable"}}'),
    Case("MPIJobWebhookLedgerUnavailable", {f'{OURS}quota_ledger_total{{outcome="late"}}': "0+9x60"}, 50, fires=False),
    Case("MPIJobWebhookKeysWait", {f"{OURS}ssh_keys_waiting": "1x60"}, 12, fires=True),
    Case("MPIJobWebhookKeysWait", {f"{OURS}ssh_keys_waiting": "1x8 0 1x50"}, 12, fires=False),
    *pairs(
        "MPIJobWebhookControllerFails",
        f'{OURS}companion_failing{{companion="network-policies"}}',
        above="1x60",
        below="1x10 0 1x10 0 1x10 0 1x10 0 1x10",
        minutes=16,
    ),
    *(
        Case(
            "MPIJobWebhookAuditStale",
            {f'{OURS}audit_age_seconds{{pod="a"}}': f"{age}", f'{OURS}audit_duration_seconds{{pod="a"}}': f"{took}x60"},
            minutes,
            fires=fires,
        )
        for age, took, minutes, fires in (
            ("3700x60", 0, 31, True),
            ("3700x60", 0, 29, False),
            ("3500x60", 0, 50, False),
            # An age of 9,000 s is healthy if an audit takes 750 s.
            ("9000x60", 750, 50, False),
            # No audit has completed.
            ("Inf+0x60", 0, 31, True),
            ("Inf+0x10 20x50", 0, 50, False),
        )
    ),
    *is_one("MPIJobWebhookCABundle", f'{OURS}ca_bundles_untrusting{{pod="a"}}', minutes=3),
    *(
        Case(alert, {f'{OURS}cert_expiry_timestamp_seconds{{cert="serving"}}': f"{end}x60"}, at, fires=fires)
        for alert, days in (("MPIJobWebhookCertificateExpires", 3), ("MPIJobWebhookCertificateExpired", 1))
        # The time of the test starts at 0, so `end` is the remaining time in seconds.
        for end, at, fires in ((days * 86_400 + 60, 30, True), (days * 86_400 + 2 * 3600, 30, False))
    ),
    *grows(
        "MPIJobWebhookCallsFail",
        f'apiserver_admission_webhook_rejection_count{{{HOOK},error_type="calling_webhook_error"}}',
        minutes=4,
    ),
    Case(
        "MPIJobWebhookCallsFail",
        {f'apiserver_admission_webhook_rejection_count{{{HOOK},error_type="no_error"}}': "0+9x60"},
        50,
        fires=False,
    ),
    Case(
        "MPIJobWebhookCallsFail",
        {f'apiserver_admission_webhook_rejection_count{{{OTHER},error_type="x"}}': "0+9x60"},
        50,
        fires=False,
    ),
    *grows("MPIJobWebhookFailsOpen", f"apiserver_admission_webhook_fail_open_count{{{HOOK}}}"),
    Case(
        "MPIJobWebhookFailsOpen", {f"apiserver_admission_webhook_fail_open_count{{{OTHER}}}": "0+9x60"}, 50, fires=False
    ),
    Case("MPIJobWebhookSlow", slow(HOOK, 98, 2), 40, fires=True),
    Case("MPIJobWebhookSlow", slow(HOOK, 999, 1), 40, fires=False),
    Case("MPIJobWebhookSlow", slow(OTHER, 0, 9), 40, fires=False),
    *grows("MPIJobWebhookConditionErrors", f"apiserver_admission_match_condition_evaluation_errors_total{{{HOOK}}}"),
    *pairs("MPIJobGPUsIdle", gpu("0"), above="4x60", below="5x60", minutes=31),
    Case("MPIJobGPUsIdle", {gpu("0"): "0x60", gpu("1"): "99x60"}, 50, fires=True),
    Case("MPIJobGPUsIdle", {gpu("0"): "0x10 90 0x10 90 0x10 90 0x30"}, 60, fires=False),
    Case("MPIJobGPUsIdle", {gpu("0"): "0x25 90x40"}, 60, fires=False),
    Case("MPIJobGPUsIdle", {gpu("0"): "0x29 stale"}, 40, fires=False),
]


@pytest.mark.parametrize("fires", [True, False])
def test_each_alert_has_a_firing_and_a_silent_case(fires: bool) -> None:
    alerts = {rule["alert"] for group in rule_groups("alerts.yaml") for rule in group["rules"]}
    assert {case.alert for case in CASES if case.fires is fires} == alerts


def test_alerts_fire_at_their_thresholds(tmp_path: Path) -> None:
    tests = [
        promtool.case(
            case.series,
            {f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}})': {"{}": 1} if case.fires else {}},
            minutes=case.minutes,
            name=f"{number}: {case}",
        )
        for number, case in enumerate(CASES)
    ]
    promtool.check_rules(rule_groups("alerts.yaml"), tests, tmp_path)
