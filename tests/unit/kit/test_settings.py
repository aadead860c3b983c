from contextlib import nullcontext
from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from webhook import rules
from webhook.kit.settings import (
    Action,
    InjectionSettings,
    NameInLabel,
    ObjectNames,
    RangeRuleSettings,
    RuleSettings,
    WarningRuleSettings,
    valid_entries,
)

BASES = (RuleSettings, WarningRuleSettings)


def test_default_action_is_deny_or_warn() -> None:
    assert [base().action for base in BASES] == [Action.DENY, Action.WARN]
    assert len({base.model_fields["action"].description for base in BASES}) == 1


@pytest.mark.parametrize("rule", rules.REGISTRY.values(), ids=lambda rule: rule.id)
def test_action_is_declared_only_in_base_classes(rule: rules.Rule) -> None:
    assert rule.settings in BASES or "action" not in rule.settings.__annotations__


def test_unquoted_off_is_accepted() -> None:
    """YAML reads an unquoted `off` as `false`."""
    assert RuleSettings.model_validate({"action": False}).action is Action.OFF


def test_unknown_setting_is_rejected() -> None:
    with pytest.raises(ValueError, match="extra_forbidden"):
        InjectionSettings.model_validate({"enable": True})


@pytest.mark.parametrize(
    ("action", "ceiling", "expected"),
    [("deny", "warn", "warn"), ("audit", "warn", "audit"), ("deny", "deny", "deny"), ("warn", "off", "off")],
)
def test_ceiling_never_strengthens_an_action(action: str, ceiling: str, expected: str) -> None:
    assert Action(action).at_most(Action(ceiling)) == expected


def test_error_mentions_the_invalid_entry() -> None:
    names = TypeAdapter(ObjectNames)
    assert names.validate_python(["a", "b.c"]) == ("a", "b.c")
    with pytest.raises(ValidationError, match='Value error, "B" ') as caught:
        names.validate_python(["a", "B"])
    assert [error["loc"] for error in caught.value.errors()] == [()]


def test_keys_of_a_mapping_are_checked() -> None:
    short = TypeAdapter(Annotated[dict[str, str], valid_entries(lambda key: "is too long" if len(key) > 1 else None)])
    assert short.validate_python({"a": "long"}) == {"a": "long"}
    with pytest.raises(ValidationError, match='Value error, "long" is too long'):
        short.validate_python({"a": "", "long": ""})


@pytest.mark.parametrize(("name", "valid"), [("", True), ("team-a.b", True), ("Team", False), ("a" * 64, False)])
def test_name_in_a_label_must_be_a_valid_label_value(name: str, valid: bool) -> None:
    with nullcontext() if valid else pytest.raises(ValidationError):
        assert TypeAdapter(NameInLabel).validate_python(name) == name


def test_minimum_above_maximum_is_rejected() -> None:
    class Settings(RangeRuleSettings):
        min: int = 2
        max: int = 4

    assert Settings.model_validate({"min": 4}).max == 4
    with pytest.raises(ValidationError, match=r"min \(5\) is above max \(4\)"):
        Settings.model_validate({"min": 5})
