"""`Context` is the second input of rules, next to the job."""

from webhook.kit.context import Context
from webhook.kit.limits import MAX_SUGGESTIONS


def test_number_of_searches_for_similar_names_is_limited() -> None:
    ctx = Context()
    suggestions = [ctx.closest_name("datset", lambda: ["dataset"]) for _ in range(MAX_SUGGESTIONS + 2)]
    assert suggestions == ["dataset"] * MAX_SUGGESTIONS + [None] * 2
    assert Context().closest_name("datset", lambda: ["dataset"]) == "dataset"
