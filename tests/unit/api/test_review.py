from datetime import date

import pytest

from tests.support.jobs import GOOD, body, changed
from webhook.admission import pipelines
from webhook.api import review
from webhook.cluster.view import NothingKnown

POLICY = pipelines.load_policy(None)


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
@pytest.mark.parametrize("hook", ["mutate", "validate"])
def test_object_that_is_not_json_gets_no_verdict(good: bytes, bad: bytes, hook: str) -> None:
    with pytest.raises(review.ReviewError, match=r"^not an AdmissionReview: "):
        _decided(hook, body(GOOD).replace(good, bad, 1))


def test_object_of_the_wrong_shape_gets_a_verdict() -> None:
    decision = _decided("validate", body(changed({"spec.slotsPerWorker": "two"}, GOOD)))
    assert [finding.rule for finding in decision.denied] == ["schema"]


def _decided(hook: str, data: bytes) -> pipelines.Decision:
    request = review.decode(data)
    if hook == "mutate":
        return pipelines.mutate(request, policy=POLICY, view=NothingKnown())
    return pipelines.validate(request, policy=POLICY, view=NothingKnown(), today=date(2026, 1, 1))
