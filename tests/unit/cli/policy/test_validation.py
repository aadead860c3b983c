from datetime import date
from typing import Any

import pytest

from tests.support.policies import policy_file
from webhook.cli.policy.documents import PolicyFile
from webhook.cli.policy.validation import Validation, validate
from webhook.policy.document import PolicyFault
from webhook.policy.faults import HINT

TODAY = date(2026, 11, 21)
MORE_GPUS = "priority: 1\nrules: {gpus: {min: 3}}"
PREMIUM = "namespaces: {matchLabels: {tier: premium}}\n"
BASE = "namespaces: {matchLabels: {tier: base}}\n"
ENDS_AT = "{rules: [gpus], users: [u], expires: %s, reason: r}"


def check(*policies: PolicyFile) -> Validation:
    return validate(policies, today=TODAY)


def test_valid_documents_are_summarized() -> None:
    text = PREMIUM + "priority: 5\nmode: warn\nrules: {gpus: {max: 1, min: 1}}\n"
    exempt = f"exemptions: [{ENDS_AT % '2026-11-21'}]"
    outcome = check(policy_file("a", text + exempt), policy_file("b"), policy_file("c", "rules: {gpus: {max: 1}}"))
    assert outcome.good
    mode = 'mode enforce, warn where "a" also applies'
    assert list(outcome.as_text()) == [
        "a.yaml: \x1b[32m\x1b[1mgood\x1b[0m (for namespaces {matchLabels: {tier: premium}}, priority 5, mode warn, "
        "2 settings, 1 exemption)",
        f"b.yaml: \x1b[32m\x1b[1mgood\x1b[0m (for all namespaces, priority 0, {mode}, 0 settings)",
        f"c.yaml: \x1b[32m\x1b[1mgood\x1b[0m (for all namespaces, priority 0, {mode}, 1 setting)",
    ]


@pytest.mark.parametrize(
    ("text", "below", "mode"),
    [
        (PREMIUM, "priority: -1\nmode: warn\n", 'mode warn (of "below")'),
        (PREMIUM, "priority: 1\nmode: audit\n", 'mode audit (of "below")'),
        (PREMIUM, "priority: -1\n", "mode enforce"),
        (PREMIUM, "namespaces: {matchLabels: {tier: basic}}\nmode: warn\n", "mode enforce"),
        ("mode: enforce\n", "priority: -1\nmode: warn\n", "mode enforce"),
    ],
)
def test_mode_of_other_documents_is_shown_for_a_document_without_a_mode(text: str, below: str, mode: str) -> None:
    first, *_ = check(policy_file("a", text), policy_file("below", below)).as_text()
    assert f"priority 0, {mode}, 0 settings" in first


def test_faults_have_field_and_line_and_accepted_values() -> None:
    faults = (
        PolicyFault("rules.gpus.max", "must be a whole number", 7),
        PolicyFault("rules.gpus.most", f"is not a setting; {HINT}", 8),
        PolicyFault("", "line 3, column 1: bad"),
    )
    outcome = check(PolicyFile("p", "p.yaml", faults=faults), policy_file("a"))
    assert not outcome.good
    assert list(outcome.as_text())[:6] == [
        "p.yaml: \x1b[31m\x1b[1mbroken\x1b[0m",
        "  line 7: rules.gpus.max: must be a whole number",
        "    accepted: whole number, 0 or more",
        "  line 8: rules.gpus.most: is not a setting",
        "    accepted: action, min, max, resources, maxCores, coreResources, "
        "refuseUncountedClaims, otherClasses, refuseVisibleDevices",
        "  the document: line 3, column 1: bad",
    ]
    broken, good = outcome.as_json()["documents"]
    assert not broken["good"]
    accepted = {"line": 7, "accepted": "whole number, 0 or more"}
    assert broken["faults"][0] == {"field": "rules.gpus.max", "reason": "must be a whole number", **accepted}
    assert good == {"name": "a", "title": "a.yaml", "good": True, "faults": []}


@pytest.mark.parametrize(
    ("policies", "warnings"),
    [
        ([policy_file("a"), policy_file("b", PREMIUM)], []),
        (
            [policy_file("a", labelled=False)],
            ['a.yaml: has no label training.openshift.io/mpijob-policy: "true", so the service does not see it'],
        ),
        (
            [policy_file("a", f"exemptions: [{ENDS_AT % '2026-11-21'}, {ENDS_AT % '2026-11-20'}]")],
            ["a.yaml: exemptions[1] ended on 2026-11-20 and has no effect"],
        ),
        ([policy_file("a"), policy_file("b"), policy_file("a")], ['2 ConfigMaps are called "a"']),
        (
            [policy_file("b", "rules: {gpus: {max: 1}}"), policy_file("a", "rules: {gpus: {max: 2}}")],
            ['rules.gpus.max: "a" and "b" have the same priority and different values; "b" wins'],
        ),
        ([policy_file("a", BASE + "mode: warn"), policy_file("b", PREMIUM + "mode: audit")], []),
        ([policy_file("a", "mode: warn"), policy_file("b", "priority: 1\nmode: audit")], []),
        (
            [policy_file("high", MORE_GPUS), policy_file("low", "rules: {gpus: {max: 2}}")],
            ['"high" conflicts with "low", and is ignored where both apply: min (3) is above max (2)'],
        ),
        (
            [policy_file("a", BASE + "rules: {gpus: {min: 3}}"), policy_file("b", PREMIUM + "rules: {gpus: {max: 2}}")],
            [],
        ),
        ([PolicyFile("a", "a.yaml", faults=(PolicyFault("", "bad"),), in_configmap=True)], []),
    ],
)
def test_conflicts_and_entries_without_effect_are_warnings(policies: list[PolicyFile], warnings: list[str]) -> None:
    outcome = check(*policies)
    assert list(outcome.warnings) == warnings
    assert outcome.as_json()["warnings"] == warnings
    shown: list[Any] = [line for line in outcome.as_text() if line.startswith("\x1b[33mwarning")]
    assert shown == [f"\x1b[33mwarning\x1b[0m: {warning}" for warning in warnings]
