"""Messages for faults of a policy use YAML's terms, not the validator's vocabulary."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.support.policies import HEADER
from webhook.api import yaml
from webhook.policy import document
from webhook.policy.document import PolicyError
from webhook.policy.faults import _fields, _model_in
from webhook.policy.in_force import policy_model

FOREIGN = re.compile(
    "Input should|instance of|tuple|dictionary|Extra inputs|Value error|pydantic|Field required|unable to parse"
    "|NoneType|valid (string|integer|boolean|date)|validation error|another type|Settings|: True|: False"
)
WRONG: tuple[Any, ...] = (
    None, [], {}, "", "x", "null", -1, 0, 1.5, 10**19, True, False, ["x"], [None], [1], [[]], [{}], {"x": "y"},
    {"x": None}, {"x": 1}, "x" * 2000, "9" * 5000, "a\nb", {"": {}}, [{"key": 1}],
)  # fmt: skip


def settings(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of each setting, including settings of list entries."""
    for name, field in _fields(model).items():
        yield (*path, name)
        if inner := _model_in(field.annotation):
            yield from settings(inner, (*path, name))


SETTINGS = list(settings(policy_model()))


def document_with(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A document with `value` at the path. If a field on the path is a list, the path continues in its first entry."""
    annotation: Any = policy_model()
    wraps: list[tuple[str, bool]] = []
    for name in path:
        annotation = _fields(annotation)[name].annotation
        wraps.append((name, "tuple" in str(annotation).split("[")[0]))
    for name, is_list in reversed(wraps):
        inner = [value] if is_list and (name, is_list) is not wraps[-1] else value
        value = {name: inner}
    return {"apiVersion": document.API_VERSION, "kind": document.KIND, **value}


def faults_of(whole: Mapping[str, Any]) -> str:
    try:
        document.load(json.dumps(whole, indent=1), policy_model())
    except PolicyError as error:
        return str(error)
    return ""


def ours(text: str) -> str:
    """The text without the parts that come from the document: values, quoted names and fields."""
    text = re.sub(r"\(it is [^\n]*", "", text)
    text = re.sub(r'"[^"\n]*"', "", text)
    return "\n".join(line.split(": ", 2)[-1] for line in text.split("\n"))


@pytest.mark.parametrize("path", SETTINGS, ids=".".join)
def test_each_setting_with_a_wrong_value_is_described_in_yaml_terms(path: tuple[str, ...]) -> None:
    for value in WRONG:
        message = faults_of(document_with(path, value))
        assert not FOREIGN.search(ours(message)), (value, message)


def test_each_setting_rejects_at_least_one_wrong_value() -> None:
    """Without rejections the test above would check nothing."""
    assert len(SETTINGS) > 200
    for path in SETTINGS:
        assert any(faults_of(document_with(path, value)) for value in WRONG), path


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from([path[-1] for path in SETTINGS]) | st.text(max_size=9)


@examples(deadline=None)
@given(st.dictionaries(NAMES, VALUES | st.dictionaries(NAMES, VALUES | st.dictionaries(NAMES, VALUES))))
def test_any_wrong_document_is_described_in_yaml_terms(whole: dict[str, Any]) -> None:
    message = faults_of({**whole, "apiVersion": document.API_VERSION, "kind": document.KIND})
    assert not FOREIGN.search(ours(message)), message


@pytest.mark.parametrize("path", [path for path in SETTINGS if "rules" in path[:1] or len(path) == 1], ids=".".join)
def test_proposed_list_is_accepted(path: tuple[str, ...]) -> None:
    """If a setting has a text instead of a list, the message proposes a list. An entry of the list may be invalid."""
    for value in ("a.example/b", "a", "nothing of the kind"):
        message = faults_of(document_with(path, value))
        if proposed := re.search(r": must be a list: (\[.*\])$", message):
            again = faults_of(document_with(path, yaml.load_all(proposed[1])[0]))
            assert "must be a list" not in again
            if value == "a.example/b":
                assert again == "" or "[0]: must be a mapping" in again, again


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode:", "mode: is empty: enforce, warn or audit, or remove it"),
        ("rules:", "rules: is empty; is the next line indented too little?"),
        (
            "rules:\n  images:\n  allowedRegistries: [a.example]\n  action: deny",
            "line 4: rules.images: is empty; is the next line indented too little?"
            " allowedRegistries, action belong to it",
        ),
        (
            "rules:\ngpus:\n  max: 4",
            "rules: is empty; is the next line indented too little? gpus belongs to it",
        ),
        (
            "rules: {images: {allowedRegistries: 'a.example, b.example'}}",
            "rules.images.allowedRegistries: must be a list: [a.example, b.example]",
        ),
        ("rules: {mpi-implementation: {allowed: 7}}", "rules.mpi-implementation.allowed: must be a list: [OpenMPI]"),
        ("controllers: 7", "controllers: must be a list: ['7']"),
        ("controllers: [7]", 'controllers[0]: must be text, in quotes: "7"'),
        ("controllers: [1.5]", "controllers[0]: must be text, in quotes (it is 1.5)"),
        (
            "exemptions: [{rules: 'gpu, worker_count', users: [a], reason: r}]",
            "exemptions[0].rules: must be a list: [gpus, worker-count]",
        ),
        ("exemptions: [{rules: all, users: [a], reason: r}]", "exemptions[0].rules: must be a list: [all]"),
        (
            "exemptions: [{rules: [gpus], namespaces: {matchLabels: {a: b}}, reason: r}]",
            "exemptions[0].namespaces: must be a list, each entry after `- `",
        ),
        ("exemptions: [{rules: [gpus], users: [a], reason: ''}]", 'exemptions[0].reason: must not be empty (it is "")'),
        (
            "injections: {job-timeout: {default: 0h}}",
            'injections.job-timeout.default: is zero; accepted: 72h, 7d or null (it is "0h")',
        ),
        ("job-timeout: {max: 4h}", "job-timeout: is a rule and an injection: write it below rules or injections"),
        ("rules: {mode: warn}", "rules.mode: belongs to the document itself: indent it less"),
        ("rules: {worker-count: {zzz: 4}}", "rules.worker-count.zzz: is not a setting; accepted: action, min, max"),
        (
            "rules: {zzz: {}}",
            "rules.zzz: is not a setting; `mpijob-webhook rules` lists rules and injections, `mpijob-webhook explain"
            " NAME` their settings",
        ),
        ("priority: 2000000", "priority: must be at most 1000000 (it is 2000000)"),
        (
            f"injections: {{topology: {{keys: [{', '.join(['a'] * 99)}]}}}}",
            "injections.topology.keys: has more than 16 entries",
        ),
        ("injections: {labels: {job: [a]}}", "injections.labels.job: must be a mapping, as {key: value}"),
        ("injections: {istio: {enabled: maybe}}", 'injections.istio.enabled: must be true or false (it is "maybe")'),
    ],
)
def test_message_has_line_field_and_fix(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        document.load(HEADER + text, policy_model())
    assert str(caught.value) == (message if message.startswith("line") else f"line 3: {message}")
