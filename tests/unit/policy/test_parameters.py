"""Settings whose value the Namespace gives."""

from typing import Any

import pytest

from tests.support.policies import HEADER, layer
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.kit.settings import Action
from webhook.policy import layers
from webhook.policy.document import PolicyError, load
from webhook.policy.in_force import MOST_KEPT, Policy, PolicySet, policy_model

KEY = "platform.example.com/max-gpus"
GPUS = f"rules: {{gpus: {{max: {{fromNamespaceAnnotation: {KEY}, default: 8, min: 1, max: 16}}}}}}"
POLICIES = PolicySet([layer("base", GPUS)])


def namespace(text: str | None = None, **labels: str) -> Namespace:
    return Namespace("team-a", labels, {} if text is None else {KEY: text})


def most(policy: Policy) -> Any:
    return policy.settings("gpus").max  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "value", "wrong"),
    [
        (None, 8, []),
        ("4", 4, []),
        (" 16 ", 16, []),
        ("", 8, [f'its annotation {KEY} must be a whole number (it is ""): max is 8']),
        ("many", 8, [f'its annotation {KEY} must be a whole number (it is "many"): max is 8']),
        ("4.0", 8, [f'its annotation {KEY} must be a whole number (it is "4.0"): max is 8']),
        ("17", 8, [f'its annotation {KEY} must be at most 16 (it is "17"): max is 8']),
        ("0", 8, [f'its annotation {KEY} must be at least 1 (it is "0"): max is 8']),
        ("9" * 300, 8, [f'its annotation {KEY} must have at most 256 characters (it is "{"9" * 37}..."): max is 8']),
        ("²", 8, [f'its annotation {KEY} must be a whole number (it is "²"): max is 8']),
        ("4\n\x1b[31m", 8, [f'its annotation {KEY} must be a whole number (it is "4\\n\\x1b[31m"): max is 8']),
    ],
)
def test_what_a_namespace_says(text: str | None, value: int, wrong: list[str]) -> None:
    given = None if text is None else text[:257]
    policy = POLICIES.for_namespace(namespace(given))
    assert most(policy) == value
    assert [each.message for each in policy.wrong] == wrong
    assert policy.document.settings_of_rule("gpus") == policy.settings("gpus")
    assert policy.admitted.gpus.most == value


@pytest.mark.parametrize("answer", [ABSENT, UNKNOWN])
def test_of_an_unknown_namespace_the_default_holds(answer: Any) -> None:
    policy = POLICIES.for_namespace(answer)
    assert most(policy) == 8
    assert policy.action("gpus") is Action.DENY
    assert policy.wrong == ()


def test_without_parameters_nothing_changes() -> None:
    plain = PolicySet([layer("base", "rules: {gpus: {max: 8}}")])
    assert plain.for_namespace(UNKNOWN) is plain.for_namespace(namespace("4"))


def test_it_is_worked_out_once_for_namespaces_that_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    first = POLICIES.for_namespace(namespace("4"))
    assert POLICIES.for_namespace(Namespace("team-b", {}, {KEY: "4", "another": "5"})) is first
    assert POLICIES.for_namespace(namespace("5")) is not first


def test_documents_are_merged_once_whatever_namespaces_say(monkeypatch: pytest.MonkeyPatch) -> None:
    merges = []
    monkeypatch.setattr(layers, "merge", lambda *args, merge=layers.merge: merges.append(1) or merge(*args))
    policies = PolicySet([layer("base", GPUS)])
    for text in ("4", "5", "many"):
        policies.for_namespace(namespace(text))
    assert len(merges) == 1


def test_so_many_are_kept() -> None:
    policies = PolicySet([layer("base", "rules: {gpus: {action: {fromNamespaceLabel: x, default: deny}}}")])
    found = policies.for_namespace(namespace(x="0"))
    policies._policies.update({(None, (), (str(number),)): found for number in range(MOST_KEPT)})
    policies.for_namespace(namespace(x="1"))
    assert len(policies._policies) == 1


DIGEST = "rules: {images: {requireDigest: {fromNamespaceLabel: x, default: false}}}"


@pytest.mark.parametrize(
    ("setting", "said", "value"),
    [
        ("rules: {gpus: {action: {fromNamespaceLabel: x, default: deny}}}", "warn", ("gpus", "action", "warn")),
        (DIGEST, "true", ("images", "require_digest", True)),
        (DIGEST, "yes", ("images", "require_digest", False)),
        ("rules: {gang: {scheduler: {fromNamespaceLabel: x, default: ''}}}", "me", ("gang", "scheduler", "me")),
        ("rules: {job-timeout: {max: {fromNamespaceLabel: x, default: 7d}}}", "72h", ("job-timeout", "max", "72h")),
        ("rules: {job-timeout: {max: {fromNamespaceLabel: x, default: null}}}", "soon", ("job-timeout", "max", None)),
    ],
)  # fmt: skip
def test_values_of_every_kind(setting: str, said: str, value: tuple[str, str, Any]) -> None:
    policy = PolicySet([layer("base", setting)]).for_namespace(namespace(x=said))
    rule, name, expected = value
    assert getattr(policy.document.settings_of_rule(rule), name) == expected
    assert bool(policy.wrong) == (said in {"yes", "soon"})


def test_of_an_injection() -> None:
    text = "injections: {job-timeout: {default: {fromNamespaceAnnotation: x/y, default: 24h}}}"
    policies = PolicySet([layer("base", text)])
    found = policies.for_namespace(Namespace("team-a", {}, {"x/y": "2h"}))
    settings = {injection.id: settings for injection, settings in found.injections}
    assert settings["job-timeout"].model_dump()["default"] == "2h"


def test_what_two_say_together_has_to_fit() -> None:
    low, high = "min: {fromNamespaceLabel: low, default: 2}", "max: {fromNamespaceLabel: high, default: 8}"
    text = f"rules: {{worker-count: {{{low}, {high}}}}}"
    policy = PolicySet([layer("base", text)]).for_namespace(namespace(low="6", high="4"))
    assert policy.settings("worker-count").model_dump()["min"] == 6  # type: ignore[union-attr]
    assert [each.message for each in policy.wrong] == ["its label high min (6) is above max (4): max is 8"]


def test_a_higher_document_wins_over_the_namespace_and_the_other_way_round() -> None:
    plain = layer("plain", "priority: 10\nrules: {gpus: {max: 2}}")
    assert most(PolicySet([layer("base", GPUS), plain]).for_namespace(namespace("4"))) == 2
    asking = layer("asking", "priority: 20\n" + GPUS)
    policy = PolicySet([plain, asking]).for_namespace(namespace("4"))
    assert (most(policy), policy.sources["rules.gpus.max"]) == (4, "asking")


def test_a_document_is_written_as_it_was_read() -> None:
    document = load(HEADER + GPUS, policy_model())
    assert layers.written(document)["rules"] == {
        "gpus": {"max": {"fromNamespaceAnnotation": KEY, "default": 8, "min": 1, "max": 16}}
    }
    assert document.settings_of_rule("gpus").model_dump()["max"]["default"] == 8
    assert document != load(HEADER + "rules: {gpus: {max: 8}}", policy_model())


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("max: {fromNamespaceAnnotation: a/b}", "rules.gpus.max.default: is missing"),
        (
            "max: {fromNamespaceAnnotation: a/b, fromNamespaceLabel: a/b, default: 8}",
            "rules.gpus.max: has both fromNamespaceAnnotation and fromNamespaceLabel: keep one",
        ),
        ("max: {fromNamespaceAnnotation: a b, default: 8}", 'rules.gpus.max: "a b" '),
        ("max: {fromNamespaceAnnotation: a/b, default: many}", "rules.gpus.max.default: must be a whole number"),
        ("max: {fromNamespaceAnnotation: a/b, default: yes}", "rules.gpus.max.default: must be a whole number"),
        ("max: {fromNamespaceAnnotation: a/b, default: 8, max: 4}", "rules.gpus.max.default: must be at most 4"),
        ("max: {fromNamespaceAnnotation: a/b, default: -1}", "rules.gpus.max.default: must be at least"),
        ("max: {fromNamespaceAnnotation: a/b, default: 8, min: 9, max: 4}", "rules.gpus.max: min (9) is above max (4)"),
        ("max: {fromNamespaceAnnotation: a/b, deflt: 8}", "rules.gpus.max.deflt: is not a part of a value from the"),
        (
            "action: {fromNamespaceLabel: a/b, default: deny, min: 1}",
            "rules.gpus.action.min: bounds a number, which this setting is not",
        ),
        (
            "resources: {fromNamespaceLabel: a/b, default: [nvidia.com/gpu]}",
            "rules.gpus.resources: takes no value from the Namespace: only a number, true or false, or a text does",
        ),
    ],
)
def test_faults_of_the_document(setting: str, fault: str) -> None:
    with pytest.raises(PolicyError) as error:
        load(f"{HEADER}rules:\n  gpus:\n    {setting}\n", policy_model())
    assert str(error.value).startswith(f"line 5: {fault}")


@pytest.mark.parametrize(
    ("old", "new", "apart"),
    [
        (None, namespace("4"), True),
        (namespace("4"), None, True),
        (namespace("4"), namespace("5"), True),
        (namespace("4"), namespace("4", tier="gold"), True),
        (namespace("4"), Namespace("team-a", {}, {KEY: "4", "touched": "now"}), False),
    ],
)
def test_which_changes_of_a_namespace_count(old: Namespace | None, new: Namespace | None, apart: bool) -> None:
    assert POLICIES.tell_apart(old, new) is apart
