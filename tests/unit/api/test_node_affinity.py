import pytest

from webhook.api.pod import NodeRequirement
from webhook.predict.scheduler import satisfies

LABELS = {"zone": "a", "size": "80", "word": "x"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ["a", "b"], True),
        ("zone", "In", ["b"], False),
        ("gone", "In", ["a"], False),
        ("zone", "NotIn", ["b"], True),
        ("zone", "NotIn", ["a"], False),
        ("gone", "NotIn", ["a"], True),
        ("zone", "Exists", None, True),
        ("gone", "Exists", None, False),
        ("zone", "DoesNotExist", None, False),
        ("gone", "DoesNotExist", None, True),
        ("size", "Gt", ["79"], True),
        ("size", "Gt", ["80"], False),
        ("size", "Lt", ["81"], True),
        ("size", "Lt", ["80"], False),
        ("gone", "Gt", ["1"], False),
        # Requirements that the API server rejects, or that cannot be compared, are treated as met.
        ("size", "Gt", [], True),
        ("word", "Gt", ["1"], True),
        ("zone", "Like", ["b"], True),
    ],
)
def test_requirement_of_node_affinity_is_compared_with_labels(
    key: str, operator: str, values: list[str] | None, expected: bool
) -> None:
    assert satisfies(LABELS, NodeRequirement(key, operator, values)) is expected
