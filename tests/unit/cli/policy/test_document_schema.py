"""The JSON Schema of policies, the accepted values of fields, and the policy that `policy init` prints."""

import json
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.policies import HEADER
from webhook import injections, rules
from webhook.api import yaml
from webhook.cli import explanations
from webhook.cli.policy.document_schema import (
    EXAMPLES,
    accepted,
    json_schema,
    schema_of_tests,
    starting_document,
)
from webhook.kit.custom_rules import PREFIX
from webhook.policy import document
from webhook.policy.document import PolicyError
from webhook.policy.in_force import load_policy, policy_model

SCHEMA = json_schema()
Draft202012Validator.check_schema(SCHEMA)
VALIDATOR = Draft202012Validator(SCHEMA)


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    """The schema and all its subschemas."""
    if isinstance(node, list):
        for item in node:
            yield from nodes(item)
    elif isinstance(node, dict):
        yield node
        for key, value in node.items():
            if key in {"properties", "$defs"}:
                yield from nodes(list(value.values()))
            elif key in {"items", "anyOf", "additionalProperties"}:
                yield from nodes(value)


def test_schema_has_no_names_of_python_modules() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["title"] == "MPIJobPolicy"
    assert SCHEMA["$id"].startswith("https://")
    assert SCHEMA["required"] == ["apiVersion", "kind"]
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert "webhook__" not in json.dumps(SCHEMA), "users do not know names of modules"


def test_unknown_fields_are_rejected_and_each_field_is_described() -> None:
    for node in nodes(SCHEMA):
        if "properties" in node:
            assert node["additionalProperties"] is False
        for name, field in node.get("properties", {}).items():
            assert field.get("description"), name
        assert "title" not in node or node is SCHEMA


def test_schema_has_the_summary_of_each_rule_and_injection() -> None:
    for name, registry in (("rules", rules.REGISTRY), ("injections", injections.REGISTRY)):
        fields = SCHEMA["properties"][name]["properties"]
        descriptions = {key: field["description"] for key, field in fields.items() if key != PREFIX}
        assert descriptions == {key: entry.documentation[0] for key, entry in registry.items()}


@pytest.mark.parametrize("entry", explanations.entries(), ids=lambda entry: f"{entry.kind}:{entry.id}")
def test_documents_in_the_documentation_are_valid(entry: explanations.Explanation) -> None:
    if entry.policy:
        assert VALIDATOR.is_valid(yaml.load_all(entry.policy)[0])


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("", True),
        ("namespaces: null", True),
        ("namespaces: {matchExpressions: [{key: a, operator: In, values: [b]}]}", True),
        ("injections: {job-timeout: {default: null}}", True),
        ("rules: {tier: {features: []}}", True),
        ("namespaces: {matchLabel: {tier: premium}}", False),
        ("namespaces: {matchExpressions: [{key: a, operator: in, values: [b]}]}", False),
        ("namespaces: {matchExpressions: [{operator: Exists}]}", False),
        ("mode: loud", False),
        ("priority: 1000001", False),
        ("priority: high", False),
        ("rule: {}", False),
        ("rules: {worker-count: {max: 0}}", False),
        ("rules: {worker-count: {most: 3}}", False),
        ("rules: {worker-counts: {}}", False),
        ("rules: {images: {allowedRegistries: [3]}}", False),
        ("rules: {clean-pod-policy: {allowed: []}}", False),
        ("injections: {labels: {job: {a: 1}}}", False),
        ("exemptions: [{rules: [gpus], users: [a]}]", False),
        ("exemptions: [{rules: [gpu], users: [a], reason: r}]", False),
        ("exemptions: [{rules: ['*'], users: [a], reason: r}]", True),
    ],
)
def test_schema_agrees_with_the_service(text: str, valid: bool) -> None:
    assert VALIDATOR.is_valid(yaml.load_all(HEADER + text)[0]) is valid
    try:
        load_policy(HEADER + text)
    except PolicyError:
        assert not valid
    else:
        assert valid


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("", ""),
        ("rules", ""),
        ("exemptions[0]", ""),
        ("mode", "enforce, warn or audit"),
        ("rules.worker-count.max", "whole number, 1 or more"),
        ("rules.tier.features[3]", "runLauncherAsWorker, gangScheduling or priorityScheduling"),
        ("rules.worker-count.minimum", "action, min, max"),
        ("injections.labels.job.a b/c.d", "mapping of text to text"),
        ("injections.tolerations.tolerations[0].efect", "key, operator, value, effect, tolerationSeconds"),
        ("exemptions[12].expires", "date such as 2027-01-31 or null"),
        ("namespaces.matchLabel", "matchLabels, matchExpressions"),
    ],
)
def test_accepted_values_of_fields(field: str, expected: str) -> None:
    assert accepted(field).removesuffix(" (did you mean effect?)") == expected


def test_accepted_values_in_the_schema_and_the_reference_agree() -> None:
    for entry in explanations.entries():
        for setting in entry.settings:
            field = f"{entry.kind}s.{entry.id}.{setting.name}".replace("[]", "[0]")
            # Accepted values are listed for the settings in a mapping, not for the mapping.
            assert accepted(field) == ("" if setting.type == "mapping" else setting.type)


class TestStartingDocument:
    TEXT = starting_document()

    def test_document_sets_every_default(self) -> None:
        loaded = document.load(self.TEXT, policy_model())
        assert loaded == policy_model()()
        assert loaded.model_dump(exclude_unset=True) == policy_model()().model_dump()

    def test_document_fits_the_schema(self) -> None:
        assert VALIDATOR.is_valid(yaml.load_all(self.TEXT)[0])

    def test_every_setting_is_explained(self) -> None:
        rows = self.TEXT.splitlines()
        explained = [
            row.partition(":")[0]
            for before, row in pairwise(rows)
            if before.strip().startswith("#") and row and not row.strip().startswith("#")
        ]
        settings = chain(*(entry.settings for entry in explanations.entries()))
        paths = [setting.name.split(".") for setting in settings if "[" not in setting.name]
        expected = ["  " * len(path) + f"  {path[-1]}" for path in paths]
        expected += [f"  {entry.id}" for entry in explanations.entries() if entry.policy or entry.id == PREFIX]
        expected += [name for name in SCHEMA["properties"] if name not in {"apiVersion", "kind"}]
        assert sorted(explained) == sorted(expected)

    def test_comments_have_the_description_and_the_accepted_values(self) -> None:
        assert (
            "\n  # The number of workers is within the limits of the policy.\n  worker-count:\n"
            "    # The action for a violation: deny, warn, audit or off.\n    action: deny\n"
            "    # Minimum number of workers; 0 admits a launcher alone. Value: whole number, 0 or more.\n"
            "    min: 2\n"
        ) in self.TEXT
        assert max(map(len, self.TEXT.splitlines())) <= 120

    def test_examples_in_the_document_are_valid(self) -> None:
        for name, example in EXAMPLES.items():
            text = yaml.dump({name: example})
            assert document.load(HEADER + text, policy_model()).model_dump(exclude_unset=True)[name]
            for row in yaml.dump(example).splitlines():
                assert f"\n#   {row}\n" in self.TEXT


def test_schema_of_policy_tests_describes_every_field() -> None:
    schema = schema_of_tests()
    assert (schema["title"], schema["required"]) == ("MPIJobPolicyTest", ["apiVersion", "kind", "policies", "tests"])
    described = [node for node in nodes(schema) if "properties" in node]
    assert {"change", "expect", "stored"} < set(schema["$defs"]["Case"]["properties"])
    assert all(field.get("description") for node in described for field in node["properties"].values())
    assert all(node["additionalProperties"] is False for node in described)
