"""The maximum number of entries of a list or mapping in a policy document."""

from typing import Any

import pytest

from tests.support.policies import HEADER
from webhook.cli.policy.document_schema import json_schema
from webhook.policy import document, store
from webhook.policy.document import PolicyError
from webhook.policy.in_force import policy_model
from webhook.policy.limits import MAX_ENTRIES
from webhook.policy.store import PolicySource


def listed(count: int) -> str:
    return f"[{', '.join(f'n{number}' for number in range(count))}]"


def exemptions(count: int) -> str:
    return "exemptions:\n" + '  - {rules: ["*"], users: [a], reason: r}\n' * count


def mapped(count: int) -> str:
    return "{" + ", ".join(f"n{number}: a" for number in range(count)) + "}"


# Maps the path of a list or mapping to a function that returns a document with `count` entries at this path.
TEXTS = {
    "exemptions": exemptions,
    "exemptions[0].users": lambda count: f"exemptions: [{{rules: [gpus], users: {listed(count)}, reason: r}}]",
    "params.a.b": lambda count: f"params: {{a: {{b: {listed(count)}}}}}",
    "namespaces.matchLabels": lambda count: f"namespaces: {{matchLabels: {mapped(count)}}}",
    "injections.labels.job": lambda count: f"injections: {{labels: {{job: {mapped(count)}}}}}",
}


@pytest.mark.parametrize("field", TEXTS)
def test_list_or_mapping_above_the_maximum_is_rejected(field: str) -> None:
    document.load(HEADER + TEXTS[field](MAX_ENTRIES), policy_model())
    with pytest.raises(PolicyError, match=r"has 1,001 entries, the maximum is 1,000") as caught:
        document.load(HEADER + TEXTS[field](MAX_ENTRIES + 1), policy_model())
    (fault,) = caught.value.faults
    assert fault.field == field
    assert fault.line is not None


def test_stored_document_above_the_maximum_is_broken() -> None:
    stored = PolicySource("base", "u", "2", HEADER + exemptions(1001))
    good = HEADER + exemptions(2)
    loaded = store.load([stored], {"base": good}, policy_model())
    assert loaded.states == {"base": "last-good"}
    assert loaded.errors == {"base": "line 3: exemptions: has 1,001 entries, the maximum is 1,000"}
    assert store.load([stored], {}, policy_model()).states == {"base": "unusable"}


def test_json_schema_has_the_maximum() -> None:
    def missing(schema: Any, path: str = "") -> list[str]:
        if isinstance(schema, list):
            return [unlimited for each in schema for unlimited in missing(each, path)]
        if not isinstance(schema, dict):
            return []
        is_unlimited = schema.get("type") == "array" and schema.get("maxItems", 0) not in range(1, 1001)
        inner = {key: value for key, value in schema.items() if key not in {"default", "examples", "enum"}}
        return [path] * is_unlimited + [name for key, each in inner.items() for name in missing(each, f"{path}.{key}")]

    assert missing(json_schema()) == []
    assert json_schema()["properties"]["params"]["maxProperties"] == MAX_ENTRIES
