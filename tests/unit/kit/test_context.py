"""The input of rules besides the job."""

from webhook.kit.context import Context
from webhook.kit.limits import MAX_SUGGESTIONS


def test_only_the_first_faults_of_a_review_get_a_similar_name() -> None:
    ctx = Context()
    found = [ctx.closest_name("datset", lambda: ["dataset"]) for _ in range(MAX_SUGGESTIONS + 2)]
    assert found == ["dataset"] * MAX_SUGGESTIONS + [None] * 2
    assert Context().closest_name("datset", lambda: ["dataset"]) == "dataset"
