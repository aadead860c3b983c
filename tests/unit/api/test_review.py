"""Reviews have the same content whether the object is cut out first or decoded with the review."""

import json
from datetime import date
from typing import Any

import msgspec
import pytest
from msgspec import structs

from tests.support.jobs import GOOD, body, changed
from webhook.admission import pipelines
from webhook.api import review
from webhook.cluster.view import NothingKnown

POLICY = pipelines.load_policy(None)
TRICKS: tuple[dict[str, Any], ...] = (
    {},
    {"a": "b", "oldObject": "null"},
    {"oldObject": "{}", "object": "{}"},
    {'a"object': "{", ',"oldObject': ":null"},
    {"a": ',"oldObject":null,"dryRun":false', "object": '"object":{'},
    {"object": {"a": 0, "oldObject": 0}},
    {"object": {"a": 0}, "oldObject": 0},
    {"object": 0, "oldObject": {"a": {"object": {}, "oldObject": {}}}},
)


def read(data: bytes) -> dict[str, Any]:
    return structs.asdict(review.decode(data))


def read_whole(data: bytes) -> dict[str, Any]:
    return structs.asdict(msgspec.json.decode(data, type=review.AdmissionReview).request)


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("compact", [True, False])
def test_parts_equal_those_of_the_whole_review(trick: dict[str, Any], compact: bool) -> None:
    job = changed({"metadata.annotations": trick}, GOOD)
    user = {"username": "alice", "extra": {key: ["{}"] for key in trick}}
    for old, fields in ((None, {}), (job, {}), (None, {"userInfo": user}), (job, {"extra": trick, "userInfo": user})):
        data = body(job, old=old, **fields)
        if not compact:
            data = json.dumps(json.loads(data)).encode()
        assert read(data) == read_whole(data)
        assert json.loads(bytes(review.decode(data).object)) == job


def test_order_of_fields_does_not_matter() -> None:
    data = json.loads(body(GOOD))
    request = data["request"]
    before = [{first: request[first]} for first in request] + [{"unknown": trick} for trick in TRICKS]
    for fields in before:
        written = json.dumps(data | {"request": fields | request}, separators=(",", ":")).encode()
        assert read(written) == read_whole(written)


def test_object_of_a_job_is_not_parsed() -> None:
    assert review.decode(body(GOOD).replace(b'"object":{', b'"object":{,')).operation == "CREATE"
    with pytest.raises(review.ReviewError):
        review.decode(body(GOOD, kind={"kind": "Secret"}).replace(b'"object":{', b'"object":{,'))


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
