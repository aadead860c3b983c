import pytest

from webhook import rules
from webhook.kit.settings import Action, InjectionSettings, RuleSettings, WarningRuleSettings

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
