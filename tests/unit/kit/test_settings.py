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
    each,
)

BASES = (RuleSettings, WarningRuleSettings)


def test_what_a_violation_leads_to_by_default() -> None:
    assert [base().action for base in BASES] == [Action.DENY, Action.WARN]
    assert len({base.model_fields["action"].description for base in BASES}) == 1


@pytest.mark.parametrize("rule", rules.REGISTRY.values(), ids=lambda rule: rule.id)
def test_the_action_is_declared_in_the_base_classes_alone(rule: rules.Rule) -> None:
    assert rule.settings in BASES or "action" not in rule.settings.__annotations__


def test_yaml_reads_an_unquoted_off_as_false() -> None:
    assert RuleSettings.model_validate({"action": False}).action is Action.OFF


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(ValueError, match="extra_forbidden"):
        InjectionSettings.model_validate({"enable": True})


@pytest.mark.parametrize(
    ("action", "ceiling", "left"),
    [("deny", "warn", "warn"), ("audit", "warn", "audit"), ("deny", "deny", "deny"), ("warn", "off", "off")],
)
def test_a_ceiling_weakens_only(action: str, ceiling: str, left: str) -> None:
    assert Action(action).at_most(Action(ceiling)) == left


def test_an_entry_with_a_problem_is_named() -> None:
    names = TypeAdapter(ObjectNames)
    assert names.validate_python(["a", "b.c"]) == ("a", "b.c")
    with pytest.raises(ValidationError, match='Value error, "B" ') as refused:
        names.validate_python(["a", "B"])
    assert [error["loc"] for error in refused.value.errors()] == [()]


def test_a_mapping_is_looked_at_by_its_keys() -> None:
    short = TypeAdapter(Annotated[dict[str, str], each(lambda key: "is too long" if len(key) > 1 else None)])
    assert short.validate_python({"a": "long"}) == {"a": "long"}
    with pytest.raises(ValidationError, match='Value error, "long" is too long'):
        short.validate_python({"a": "", "long": ""})


@pytest.mark.parametrize(("name", "valid"), [("", True), ("team-a.b", True), ("Team", False), ("a" * 64, False)])
def test_a_name_in_a_label_is_no_longer_than_a_label_can_hold(name: str, valid: bool) -> None:
    try:
        assert TypeAdapter(NameInLabel).validate_python(name) == name
    except ValidationError:
        assert not valid
    else:
        assert valid


def test_a_range_has_its_ends_in_order() -> None:
    class Settings(RangeRuleSettings):
        min: int = 2
        max: int = 4

    assert Settings.model_validate({"min": 4}).max == 4
    with pytest.raises(ValidationError, match=r"min \(5\) is above max \(4\)"):
        Settings.model_validate({"min": 5})
