import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.api.labels import Selector, SelectorError


def expression(key: object, operator: object, *values: object) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {}, False),
        ({}, {"a": "1"}, True),
        ({"matchLabels": None, "matchExpressions": None}, {"a": "1"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchLabels": {"a": "1", "b": "2"}}, {"a": "1"}, False),
        (expression("a", "In", "1", "2"), {"a": "2"}, True),
        (expression("a", "In", "1", "2"), {"a": "3"}, False),
        (expression("a", "Exists"), {"a": ""}, True),
        (expression("a", "Exists"), {"b": "1"}, False),
        ({"matchLabels": {"a": "1"}} | expression("b", "Exists"), {"a": "1", "b": "2"}, True),
    ],
)
def test_selector_matches_labels(selector: object, labels: dict[str, str], expected: bool) -> None:
    assert Selector.parse(selector).matches(labels) is expected


NO_TEXT = "must be the value of a label, as text: numbers, true and false need quotes"
NO_OPERATOR = "must be one of In, NotIn, Exists, DoesNotExist"


@pytest.mark.parametrize(
    ("selector", "path", "message"),
    [
        ("a=1", "", "must be a mapping"),
        ({"matchLabel": {"a": "1"}}, "", 'unknown field "matchLabel", write matchLabels'),
        ({1: 2}, "", "unknown field, use one of matchLabels, matchExpressions"),
        ({"matchLabels": []}, "matchLabels", "must be a mapping"),
        ({"matchLabels": {1: "1"}}, "matchLabels", "must be the key of a label, as text"),
        ({"matchLabels": {"-a": "1"}}, "matchLabels", "the label key must start and end with a letter or a digit"),
        ({"matchLabels": {"example.com/a": True}}, "matchLabels[example.com/a]", NO_TEXT),
        (
            {"matchLabels": {"a": "b c"}},
            "matchLabels[a]",
            'the label value contains " "; allowed are letters, digits, "-", "_" and "."',
        ),
        ({"matchExpressions": {}}, "matchExpressions", "must be a list"),
        ({"matchExpressions": [[]]}, "matchExpressions[0]", "must be a mapping"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "op": "Exists"}]},
            "matchExpressions[1]",
            'unknown field "op", use one of key, operator, values',
        ),
        ({"matchExpressions": [{}]}, "matchExpressions[0].key", "must be the key of a label, as text"),
        (expression("a", "Gt", "1"), "matchExpressions[0].operator", NO_OPERATOR),
        (expression("a", "in", "1"), "matchExpressions[0].operator", "must be In"),
        (expression("a", "Exist"), "matchExpressions[0].operator", "must be Exists"),
        (expression("a", {}), "matchExpressions[0].operator", NO_OPERATOR),
        (expression("a", "NotIn"), "matchExpressions[0].values", "operator NotIn needs at least one value"),
        (
            expression("a", "DoesNotExist", "1"),
            "matchExpressions[0].values",
            "operator DoesNotExist takes no values, remove them",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": "1"}]},
            "matchExpressions[0].values",
            "must be a list",
        ),
        (expression("a", "In", "1", 2), "matchExpressions[0].values[1]", NO_TEXT),
    ],
)
def test_selector_fault_has_the_path_of_the_field(selector: object, path: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        Selector.parse(selector)
    assert (caught.value.path, caught.value.message) == (path, message)
    assert str(caught.value) == (f"{path}: {message}" if path else message)


def test_selector_is_frozen_and_independent_of_its_source() -> None:
    source = {"matchLabels": {"a": "1"}}
    selector = Selector.parse(source)
    source["matchLabels"]["a"] = "2"
    assert selector.matches({"a": "1"})
    assert hash(selector) == hash(Selector.parse({"matchLabels": {"a": "1"}}))
    with pytest.raises(AttributeError):
        selector.requirements = ()


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
shaped = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": json | st.dictionaries(st.sampled_from(["a", "b/c"]), st.sampled_from(["", "1"]) | json),
        "matchExpressions": json
        | st.lists(
            st.fixed_dictionaries(
                {"key": st.sampled_from(["a", "b/c"]) | json},
                optional={
                    "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]) | json,
                    "values": st.lists(st.sampled_from(["", "1"]) | json, max_size=2) | json,
                },
            ),
            max_size=3,
        ),
    },
)


@given(json | shaped, st.dictionaries(st.sampled_from(["a", "b/c"]), st.sampled_from(["", "1"])))
def test_any_value_is_a_selector_or_a_selector_error(selector: object, labels: dict[str, str]) -> None:
    try:
        compiled = Selector.parse(selector)
    except SelectorError:
        return
    assert isinstance(compiled.matches(labels), bool)


@given(
    st.sampled_from(["a", "b"]),
    st.lists(st.sampled_from(["", "1", "2"]), min_size=1),
    st.dictionaries(st.just("a"), st.sampled_from(["", "1"])),
)
def test_negated_operators_are_complements(key: str, values: list[str], labels: dict[str, str]) -> None:
    def matches(operator: str, *args: str) -> bool:
        return Selector.parse(expression(key, operator, *args)).matches(labels)

    assert matches("In", *values) is not matches("NotIn", *values)
    assert matches("Exists") is not matches("DoesNotExist")
