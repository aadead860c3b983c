from datetime import date

import click
import pytest

from tests.support.policies import layer
from webhook.cli.policy.effective_values import EffectiveValues, for_namespace
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.view import ABSENT, UNKNOWN, Answer
from webhook.policy.in_force import PolicySet
from webhook.policy.layers import Layer

TODAY = date(2026, 11, 21)
TEAM_A = Namespace("team-a", {"tier": "premium", "env": "prod"})
BASE = layer(
    "base",
    "rules: {worker-count: {max: 8}, gpus: {action: 'off'}}\n"
    "exemptions: [{rules: [images, gpus], users: [u, v], expires: 2026-11-20, reason: old}]",
)
PREMIUM = layer(
    "premium",
    "priority: 10\nnamespaces: {matchLabels: {tier: premium}}\nmode: warn\nrules: {worker-count: {max: 64}}\n"
    "exemptions: [{rules: ['*'], namespaces: [ops], serviceAccounts: [ops/ci], expires: 2026-11-21, reason: tests}]",
)


def report(*layers: Layer, stored: Namespace | Answer = TEAM_A, origin: str = "") -> EffectiveValues:
    return for_namespace("team-a", stored, PolicySet(layers), today=TODAY, origin=origin)


def text(values: EffectiveValues) -> list[str]:
    return [click.unstyle(line) for line in values.as_text()]


def shown(values: EffectiveValues, path: str) -> str:
    """The source and the value in the line of a setting, with single spaces between the columns."""
    (line,) = [line for line in text(values) if line.startswith(f"{path} ")]
    return " ".join(line.split()[1:])


def test_header_lists_the_policies() -> None:
    assert text(report(PREMIUM, BASE))[:5] == [
        "namespace team-a (env=prod, tier=premium)",
        "  base applies: priority 0, for all namespaces",
        "  premium applies: priority 10, for namespaces {matchLabels: {tier: premium}}",
        "note: the mode is warn, by premium: no rule does more than warn",
        "",
    ]
    assert text(report(PREMIUM, BASE, stored=Namespace("team-a", {})))[:4] == [
        "namespace team-a",
        "  base applies: priority 0, for all namespaces",
        "  premium does not apply: priority 10, for namespaces {matchLabels: {tier: premium}}",
        "",
    ]


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        ("", "  no policy: the built-in defaults apply"),
        ("namespace x of y", "  no policy in namespace x of y: the built-in defaults apply"),
    ],
)
def test_built_in_defaults_apply_without_policies(origin: str, line: str) -> None:
    values = report(origin=origin)
    assert text(values)[1:3] == [line, ""]
    assert text(values)[-2:] == ["exemptions", "  none"]
    assert {value["source"] for value in values.as_json()["values"]} == {"built-in default"}


def test_each_value_has_its_source() -> None:
    values = report(PREMIUM, BASE)
    assert shown(values, "mode") == "premium warn"
    assert shown(values, "rules.worker-count.max") == "premium 64"
    assert shown(values, "rules.worker-count.min") == "built-in default 2"
    sources = {value["path"]: (value["value"], value["source"]) for value in values.as_json()["values"]}
    assert sources["rules.worker-count.max"] == (64, "premium")
    assert sources["injections.job-timeout.default"] == ("24h", "built-in default")
    assert not {"apiVersion", "kind", "priority", "namespaces", "exemptions"} & sources.keys()


def test_effective_action_is_shown_if_the_mode_weakens_it() -> None:
    values = report(PREMIUM, BASE)
    assert shown(values, "rules.images.action") == "built-in default deny (warn here)"
    assert shown(values, "rules.gpus.action") == "base off"
    assert values.as_json()["actions"]["images"] == "warn"
    assert values.as_json()["actions"]["gpus"] == "off"
    assert shown(report(BASE), "rules.images.action") == "built-in default deny"


def test_setting_inject_only_is_shown() -> None:
    values = report(layer("listed", "injectOnly: [labels, istio]\ninjections: {istio: {enabled: false}}"))
    assert values.notes == ["injectOnly is [labels, istio]: no other injection is active"]
    assert shown(values, "injectOnly") == "listed [labels, istio]"
    assert shown(values, "injections.labels.enabled") == "built-in default true"
    assert shown(values, "injections.istio.enabled") == "listed false"
    assert shown(values, "injections.mpi-env.enabled") == "built-in default true (false here)"
    assert report(layer("empty", "injectOnly: []")).notes == ["injectOnly is []: no other injection is active"]


def test_exemptions_are_shown_with_source_and_end_date() -> None:
    values = report(PREMIUM, BASE)
    assert text(values)[-3:] == [
        "exemptions",
        "  base: from images, gpus for users u, v, ended on 2026-11-20: old",
        "  premium: from every rule for namespaces ops; service accounts ops/ci, until 2026-11-21: tests",
    ]
    exemptions = values.as_json()["exemptions"]
    assert [(exemption["source"], exemption["reason"]) for exemption in exemptions] == [
        ("base", "old"),
        ("premium", "tests"),
    ]


@pytest.mark.parametrize(
    ("stored", "note"),
    [
        (ABSENT, 'there is no namespace "team-a"'),
        (UNKNOWN, "the namespace's labels are unknown without --kubeconfig, or --cluster with namespaces"),
    ],
)
def test_policies_with_a_selector_are_ignored_for_an_unknown_namespace(stored: Answer, note: str) -> None:
    selective = layer("premium", "namespaces: {matchLabels: {tier: premium}}\nrules: {worker-count: {max: 64}}")
    values = report(BASE, selective, stored=stored)
    assert values.notes == [note, "ignored here, because it is unknown whether they apply: premium"]
    assert "  premium may apply: priority 0, for namespaces {matchLabels: {tier: premium}}" in text(values)
    assert shown(values, "rules.worker-count.max") == "base 8"
    assert values.as_json()["labels"] is None
    assert values.as_json()["known"] is False
    assert report(BASE, stored=stored).notes == [note]


def test_policy_that_conflicts_with_another_policy_is_left_out_and_named() -> None:
    low = layer("low", "rules: {gpus: {max: 2}}\nexemptions: [{rules: [gpus], users: [u], reason: r}]")
    high = layer("high", "priority: 1\nrules: {gpus: {min: 3}}\nexemptions: [{rules: [gpus], users: [u], reason: r}]")
    values = report(low, high)
    assert values.notes == ["high is left out: min (3) is above max (2)"]
    assert [name for name, _ in values.exemptions] == ["low"]


def test_control_characters_in_names_are_replaced() -> None:
    values = report(layer("\x1b[2Jbase\n", "mode: warn"))
    assert "\x1b" not in "".join(text(values))
