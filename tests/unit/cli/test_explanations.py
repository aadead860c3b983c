"""The output of `explain` and `rules`."""

import json
from typing import Annotated, Literal

import pytest
from pydantic import Field

from tests.support.checking import run
from webhook import injections, rules
from webhook.admission import messages, pipelines
from webhook.admission.validate import required_injections
from webhook.cli import explanations
from webhook.cli.explanations import Setting
from webhook.kit.custom_rules import PREFIX
from webhook.kit.settings import Action, Settings
from webhook.rules import worker_count


class Inner(Settings):
    depth: float = Field(0.5, le=1, description="How deep.")
    reason: str = Field(description="Why.")


class Example(Settings):
    action: Action = Field(Action.OFF, description="An enum.")
    choice: Literal["one", "two", 3] = Field("one", description="A choice.")
    fixed: Literal["this"] = Field("this", description="A constant.")
    some_number: int = Field(2, ge=1, le=9, description="A number.")
    less: int = Field(2, le=9, description="A number.")
    optional: str | None = Field(None, description="Text or nothing.")
    switch: bool = Field(True, description="A switch.")
    names: tuple[Annotated[str, Field(max_length=3)], ...] = Field(("a", "b"), description="Names.")
    free: dict[str, object] = Field({}, description="Anything.")
    by_name: dict[str, int] = Field({"a": 1}, description="Numbers by name.")
    inner: Inner = Field(default_factory=lambda: Inner(reason="so"), description="Nested.")
    several: tuple[Inner, ...] = Field((), description="Nested many times.")


def test_types_of_settings_in_words() -> None:
    assert explanations.settings(Example) == (
        Setting("action", "deny, warn, audit or off", "'off'", "An enum."),
        Setting("choice", "one, two or 3", "one", "A choice."),
        Setting("fixed", "this", "this", "A constant."),
        Setting("someNumber", "whole number, 1 to 9", "2", "A number."),
        Setting("less", "whole number, 9 or less", "2", "A number."),
        Setting("optional", "text or null", "null", "Text or nothing."),
        Setting("switch", "true or false", "true", "A switch."),
        Setting("names", "list of text", "[a, b]", "Names."),
        Setting("free", "mapping of text to anything", "{}", "Anything."),
        Setting("byName", "mapping of text to whole number", "{a: 1}", "Numbers by name."),
        Setting("inner", "mapping", "", "Nested."),
        Setting("inner.depth", "number, 1 or less", "0.5", "How deep."),
        Setting("inner.reason", "text", "", "Why.", required=True),
        Setting("several", "list of mapping", "[]", "Nested many times."),
        Setting("several[].depth", "number, 1 or less", "0.5", "How deep."),
        Setting("several[].reason", "text", "", "Why.", required=True),
    )


def test_every_rule_and_injection_is_explained() -> None:
    entries = explanations.entries()
    assert [entry.id for entry in entries if entry.kind == "rule"] == sorted(
        [*rules.REGISTRY, PREFIX, messages.SCHEMA, required_injections.RULE]
    )
    assert [entry.id for entry in entries if entry.kind == "injection"] == list(injections.REGISTRY)
    for entry in entries:
        assert entry.summary.endswith("."), entry.id
        assert entry.since, entry.id
        assert entry.default in {"on", "off", *Action}, entry.id
        assert all(setting.description for setting in entry.settings), entry.id


@pytest.mark.parametrize("entry", explanations.entries(), ids=lambda entry: f"{entry.kind}:{entry.id}")
def test_shown_policy_equals_the_defaults(entry: explanations.Explanation) -> None:
    if entry.policy:
        assert pipelines.load_policy(entry.policy).document == pipelines.load_policy(None).document


def test_text_of_settings() -> None:
    entry = explanations.Explanation("x", "rule", "Summary.", "", "deny", "0.1", explanations.settings(Example))
    lines = list(entry.as_text())
    assert "  optional: text or null, default null" in lines
    assert "  inner: mapping" in lines
    assert "  inner.reason: text, required" in lines


def test_text_of_a_rule() -> None:
    (entry,) = explanations.find("worker-count")
    assert list(entry.as_text()) == [
        "\x1b[1mworker-count\x1b[0m (rule, action: deny, since 0.1)",
        "",
        *str(worker_count.__doc__).splitlines(),
        "",
        "\x1b[1mSettings\x1b[0m",
        "  action: deny, warn, audit or off, default deny",
        "      The action for a violation: deny, warn, audit or off.",
        "  min: whole number, 0 or more, default 2",
        "      Minimum number of workers; 0 admits a launcher alone.",
        "  max: whole number, 1 or more, default 100",
        "      Maximum number of workers.",
        "",
        "\x1b[1mIn a policy file, with the defaults\x1b[0m",
        "  apiVersion: policy.training.openshift.io/v1",
        "  kind: MPIJobPolicy",
        "  rules:",
        "    worker-count:",
        "      action: deny",
        "      min: 2",
        "      max: 100",
    ]


@pytest.mark.parametrize(
    ("name", "similar"),
    [("WORKER_COUNT", "worker-count"), ("Workercount", "worker-count"), ("isto", "istio"), ("image", "images")],
)
def test_similar_names_are_suggested(name: str, similar: str) -> None:
    assert not explanations.find(name)
    assert explanations.similar(name)[0] == similar


def test_every_rule_and_injection_is_listed() -> None:
    result = run("rules")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for entry in explanations.entries():
        assert [entry.id, entry.default, *entry.summary.split()] in [line.split() for line in lines]
    assert lines[-1] == "`mpijob-webhook explain NAME` says more."


def test_list_of_rules_and_injections_as_json() -> None:
    data = json.loads(run("rules", "-o", "json").stdout)
    assert list(data) == ["rules", "injections"]
    assert {
        "id": "worker-count",
        "default": "deny",
        "summary": "The number of workers is within the limits of the policy.",
        "since": "0.1",
    } in data["rules"]
    assert [entry["id"] for entry in data["injections"]] == list(injections.REGISTRY)


def test_explain_shows_the_rule_and_the_injection_of_the_same_name() -> None:
    result = run("explain", "clean-pod-policy")
    assert result.exit_code == 0
    assert result.stdout.startswith("clean-pod-policy (rule, action: deny, since 0.1)\n\n")
    assert "\n\nclean-pod-policy (injection, default: on, since 0.1)\n\n" in result.stdout


def test_unknown_name_is_an_error_with_suggestions() -> None:
    result = run("explain", "worker_counts")
    assert (result.exit_code, result.stdout) == (2, "")
    similar = "worker-count or worker-readiness or idle-workers"
    assert result.stderr == f'error: there is no rule or injection "worker_counts", did you mean {similar}?\n'
    assert run("explain", "\x1b[2Jqqqq").stderr == (
        'error: there is no rule or injection "\N{REPLACEMENT CHARACTER}[2Jqqqq", `mpijob-webhook rules` lists them\n'
    )
