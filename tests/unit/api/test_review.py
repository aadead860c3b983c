from datetime import date

import pytest

from tests.support.jobs import GOOD, body, changed
from webhook.admission import pipelines
from webhook.api import review
from webhook.cluster.view import NothingKnown


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b'"object":{', b'"object":{,'),
        (b'},"oldObject":', b',"oldObject":'),
        (b'},"oldObject":', b'}},"oldObject":'),
        (b'},"oldObject":', b'}{},"oldObject":'),
        (b'},"oldObject":', b'},"dry":{},{},"oldObject":'),
        (b'"metadata":{', b'"metadata":{"x":' + b"[" * 5000 + b"]" * 5000 + b","),
        (b'"metadata":{', b'"metadata":{"x":tru,'),
    ],
)
def test_body_with_an_invalid_object_is_not_a_review(good: bytes, bad: bytes) -> None:
    with pytest.raises(review.ReviewError, match=r"^not an AdmissionReview: "):
        review.decode(body(GOOD).replace(good, bad, 1))


def test_object_of_the_wrong_shape_gets_a_verdict() -> None:
    request = review.decode(body(changed({"spec.slotsPerWorker": "two"}, GOOD)))
    policy = pipelines.load_policy(None)
    decision = pipelines.validate(request, policy=policy, view=NothingKnown(), today=date(2026, 1, 1))
    assert [finding.rule for finding in decision.denied] == ["schema"]
