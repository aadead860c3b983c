from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.policy.in_force import policy_model
from webhook.policy.layers import Layer, may_meet

HEADER = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}


def layer(namespaces: dict[str, Any] | None) -> Layer:
    return Layer("x", policy_model().model_validate({**HEADER, "namespaces": namespaces}))


def is_in(*values: str) -> dict[str, Any]:
    return {"key": "tier", "operator": "In", "values": list(values)}


def not_in(*values: str) -> dict[str, Any]:
    return {"key": "tier", "operator": "NotIn", "values": list(values)}


EXISTS = {"key": "tier", "operator": "Exists"}
MISSING = {"key": "tier", "operator": "DoesNotExist"}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (None, None, True),
        (None, {"matchLabels": {"tier": "a"}}, True),
        ({}, {"matchLabels": {"tier": "a"}}, True),
        ({"matchLabels": {"tier": "a"}}, {"matchLabels": {"tier": "b"}}, False),
        ({"matchLabels": {"tier": "a"}}, {"matchLabels": {"team": "b"}}, True),
        ({"matchLabels": {"tier": "a"}}, {"matchExpressions": [is_in("b", "a")]}, True),
        ({"matchLabels": {"tier": "a"}}, {"matchExpressions": [not_in("a")]}, False),
        ({"matchExpressions": [MISSING]}, {"matchLabels": {"tier": "a"}}, False),
    ],
)
def test_result_of_may_meet_is_true_if_both_selectors_can_match_one_namespace(
    first: Any, second: Any, expected: bool
) -> None:
    assert may_meet(layer(first), layer(second)) is expected
    assert may_meet(layer(second), layer(first)) is expected


conditions = st.one_of(
    st.sampled_from([EXISTS, MISSING]),
    st.builds(
        lambda values, make: make(*values),
        st.lists(st.sampled_from("abc"), min_size=1),
        st.sampled_from([is_in, not_in]),
    ),
)
selectors = st.lists(conditions, max_size=3).map(lambda expressions: {"matchExpressions": expressions})


@given(selectors, selectors)
def test_result_of_may_meet_is_exact_for_conditions_on_one_label(first: dict[str, Any], second: dict[str, Any]) -> None:
    left, right = layer(first), layer(second)
    possible = [{}, *({"tier": value} for value in "abcd")]
    assert may_meet(left, right) is any(left.selects(labels) and right.selects(labels) for labels in possible)
