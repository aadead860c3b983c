"""The service loads a plug-in only if the setting lists it. If a plug-in is broken, other rules still apply."""

from pathlib import Path

import pytest

from tests.support.plugins import INJECTION, RULE, SAYS_NO, install, install_injection, install_rule, taken_in
from tests.support.policies import HEADER
from webhook import injections, rules
from webhook.admission import messages
from webhook.admission.validate import required_injections
from webhook.cli import explanations
from webhook.cli.policy.document_schema import json_schema
from webhook.kit import custom_rules
from webhook.plugins import loading
from webhook.policy.document import PolicyError
from webhook.policy.in_force import load_policy

GOOD = RULE.format(id="acme-no", body=SAYS_NO)


def test_plugin_not_listed_in_the_setting_is_not_imported(tmp_path: Path) -> None:
    install(tmp_path, "acme", {"acme_no": "raise SystemExit('imported')"}, {"rules": {"acme-no": "acme_no:check"}})
    with taken_in(tmp_path) as plugins:
        assert plugins == ()
        (plugin,) = (each for each in loading.installed() if each.name == "acme")
        assert (plugin.state, plugin.rules) == ("unused", ("acme-no",))
        assert "acme-no" not in rules.REGISTRY


@pytest.mark.parametrize("name", ["acme", "Acme", "all"])
def test_plugin_listed_in_the_setting_is_loaded(tmp_path: Path, name: str) -> None:
    install(
        tmp_path,
        "acme",
        {"acme_no": GOOD, "acme_more": INJECTION.format(id="acme-more", body="yield from ()", forms="()")},
        {"rules": {"acme-no": "acme_no:check"}, "injections": {"acme-more": "acme_more:inject"}},
    )
    with taken_in(tmp_path, name) as plugins:
        assert plugins == (loading.Plugin("acme", "1.0", "in force", ("acme-no",), ("acme-more",)),)
        assert rules.REGISTRY["acme-no"].plugin == injections.REGISTRY["acme-more"].plugin == "acme"
        assert list(rules.REGISTRY) == sorted(rules.REGISTRY)
        assert loading.problems() == {}
    assert "acme-no" not in rules.REGISTRY


def test_settings_of_a_plugin_are_in_the_schema_the_reference_and_policies(tmp_path: Path) -> None:
    install_rule(tmp_path)
    with taken_in(tmp_path, "acme"):
        policy = load_policy(HEADER + "rules: {acme-no: {action: warn, word: never}}")
        assert getattr(policy.settings("acme-no"), "word") == "never"  # noqa: B009 - type checkers do not know the setting
        with pytest.raises(PolicyError, match=r"line 3: rules.acme-no.wrd: is not a setting; did you mean word"):
            load_policy(HEADER + "rules: {acme-no: {wrd: never}}")
        (entry,) = explanations.find("acme-no")
        assert entry.summary == "Says no."
        assert entry.plugin == "acme"
        assert "(rule of the plug-in acme, action: deny, since 1.0)" in next(iter(entry.as_text()))
        assert "word" in json_schema()["properties"]["rules"]["properties"]["acme-no"]["properties"]


WRONG = {
    "cannot be imported": ("import no_such_module", "cannot be imported: ModuleNotFoundError: No module named"),
    "ends the process": ("raise SystemExit(1)", "cannot be imported: SystemExit: 1"),
    "no function": ("VALUE = 1", "cannot be imported: AttributeError"),
    "not decorated": ("def check(): pass", "acme_no:check is not a function below @rule"),
    "another id": (RULE.format(id="acme-yes", body=SAYS_NO), "acme_no:check is called acme-yes in @rule"),
    "no docstring": (GOOD.partition("\n")[2], "its module has no docstring"),
    "settings of another class": (
        GOOD.replace("(RuleSettings)", "(InjectionSettings)"),
        "its settings are not derived from RuleSettings",
    ),
    "no defaults": (GOOD.replace('word: str = "no"', "word: str"), "its settings have no valid defaults: word"),
    "different type of action": (
        GOOD.replace('word: str = "no"', 'word: str = "no"; action: int = 3'),
        "its settings change the type of action, but only the default may differ",
    ),
    "a default that JSON cannot express": (
        GOOD.replace('word: str = "no"', 'n: float = float("inf")'),
        "its settings cannot be used: ValueError",
    ),
    "admits returns a number": (
        GOOD.replace('since="1.0"', 'since="1.0", admits=lambda _: 3'),
        "`admits` does not return Admitted",
    ),
}


@pytest.mark.parametrize(("module", "fault"), WRONG.values(), ids=list(WRONG))
def test_broken_plugin_is_reported_and_policies_that_use_it_stay_valid(tmp_path: Path, module: str, fault: str) -> None:
    install(tmp_path, "acme", {"acme_no": module}, {"rules": {"acme-no": "acme_no:check"}})
    with taken_in(tmp_path, "acme") as (plugin,):
        assert plugin.state == "broken"
        assert len(plugin.faults) == 1
        assert plugin.faults[0].startswith(f"rule acme-no: {fault}")
        assert loading.problems() == {"acme": plugin.faults[0]}
        exemptions = "exemptions: [{rules: [acme-no], reason: old, users: [eva]}]"
        policy = load_policy(f"{HEADER}rules: {{acme-no: {{action: deny, word: [7]}}}}\n{exemptions}")
        assert policy.settings("acme-no") is None
        assert policy.document.model_dump(by_alias=True)["rules"]["acme-no"] == {"action": "deny", "word": [7]}


@pytest.mark.parametrize("forms", ["Form(('spec',), a_text)", "(7,)", "(Form(['spec'], a_text),)"])
def test_plugin_whose_forms_are_not_a_tuple_of_forms_is_broken(tmp_path: Path, forms: str) -> None:
    install_injection(tmp_path, "yield from ()", forms=forms)
    with taken_in(tmp_path, "acme") as (plugin,):
        assert plugin.state == "broken"
        assert plugin.faults[0].startswith("injection acme-more: cannot be imported: TypeError: ")


@pytest.mark.parametrize(
    "entry_id", ["gpus", "schema", "required-injection", "custom", "No", "a_b", "model-fields", "x" * 51]
)
def test_plugin_is_broken_if_its_id_is_taken_or_reserved_or_invalid(tmp_path: Path, entry_id: str) -> None:
    install_rule(tmp_path, entry_id=entry_id)
    ours = rules.REGISTRY["gpus"]
    with taken_in(tmp_path, "acme") as (plugin,):
        assert plugin.state == "broken"
        assert rules.REGISTRY["gpus"] is ours
        load_policy(HEADER + "rules: {gpus: {max: 4}}")


def test_second_plugin_whose_rule_has_the_same_id_is_broken(tmp_path: Path) -> None:
    points = {"rules": {"acme-no": "acme_no:check"}}
    install(tmp_path, "acme", {"acme_no": GOOD}, points)
    install(tmp_path, "better", {"better_no": GOOD}, {"rules": {"acme-no": "better_no:check"}})
    with taken_in(tmp_path, "better", "acme") as plugins:
        assert [(each.name, each.state) for each in plugins] == [("better", "in force"), ("acme", "broken")]
        assert plugins[1].faults == (
            'rule acme-no: the plug-in "better" already has a rule with this name; that rule remains active',
        )
        assert rules.REGISTRY["acme-no"].plugin == "better"
        assert rules.REGISTRY.unusable == set()


def test_other_rules_of_a_broken_plugin_are_loaded(tmp_path: Path) -> None:
    modules = {"acme_no": GOOD, "acme_bad": "1/0"}
    install(tmp_path, "acme", modules, {"rules": {"acme-bad": "acme_bad:check", "acme-no": "acme_no:check"}})
    with taken_in(tmp_path, "acme") as (plugin,):
        assert plugin.rules == ("acme-no",)
        assert plugin.faults == ("rule acme-bad: cannot be imported: ZeroDivisionError: division by zero",)


def test_plugin_that_is_not_installed_is_broken(tmp_path: Path) -> None:
    with taken_in(tmp_path, "acme") as plugins:
        assert loading.problems() == {"acme": "it is not installed, or has no entry points of this service"}
        assert plugins[0].version == ""


def test_package_with_unreadable_metadata_is_ignored(tmp_path: Path) -> None:
    install_rule(tmp_path)
    (tmp_path / "broken-1.0.dist-info").mkdir()
    (tmp_path / "broken-1.0.dist-info" / "entry_points.txt").write_text("[mpijob_webhook.rules]\n]x[\n=\n")
    with taken_in(tmp_path, "all") as plugins:
        assert [each.name for each in plugins] == ["acme"]


def test_ids_of_findings_without_a_rule_are_reserved() -> None:
    assert {messages.SCHEMA, required_injections.RULE, custom_rules.PREFIX} == loading.RESERVED
