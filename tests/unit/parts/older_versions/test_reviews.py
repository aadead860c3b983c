"""The endpoint `/convert` answers ConversionReviews of the API server, and rejects invalid requests."""

import asyncio
import gc
import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from tests.support.jobs import GOOD, body
from tests.support.live_service import Connection, Live, head, live
from webhook.parts.older_versions import both_ways, conversion_review, reviews
from webhook.parts.older_versions.both_ways import convert
from webhook.server import settings
from webhook.server.settings import ServeSettings, StartError
from webhook.work_limit import TooExpensive

V1 = "kubeflow.org/v1"
V2BETA1 = "kubeflow.org/v2beta1"
OLD: dict[str, Any] = convert(deepcopy(GOOD), V1)
OLD["metadata"].pop("annotations", None)
del OLD["spec"]["runPolicy"]
OLD["spec"]["cleanPodPolicy"] = "All"
NO_JOB: dict[str, Any] = {"apiVersion": V1, "kind": "MPIJob", "metadata": {"name": "a", "namespace": "b"}, "spec": {}}


def review(*objects: Any, version: str = V2BETA1, **request: Any) -> bytes:
    fields = {"uid": "1", "desiredAPIVersion": version, "objects": objects, **request}
    envelope = {"apiVersion": conversion_review.API_VERSION, "kind": conversion_review.KIND}
    return json.dumps({**envelope, "request": fields}).encode()


@pytest.fixture(scope="module")
def shared() -> Iterator[Live]:
    with live(options={"--conversion"}, timeout_seconds=600) as service:
        yield service


@pytest.fixture
def connection(shared: Live) -> Iterator[Connection]:
    opened = shared.connect()
    yield opened
    opened.close()


def test_objects_are_converted_in_their_order(connection: Connection) -> None:
    other = {**OLD, "metadata": {"name": "other"}}
    reply = connection.post("/convert?timeout=30s", review(OLD, other))
    assert reply.status == 200
    assert json.loads(reply.body) == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": "1",
            "result": {"status": "Success"},
            "convertedObjects": [convert(OLD, V2BETA1), convert(other, V2BETA1)],
        },
    }
    back = connection.post("/convert", review(*reply.answer["convertedObjects"], version=V1))
    assert back.answer["convertedObjects"] == [OLD, other]
    assert connection.post("/convert", review()).answer["convertedObjects"] == []


def test_invalid_job_is_rejected_with_a_reason(shared: Live, connection: Connection) -> None:
    before = shared.metric("conversions_total", version=V2BETA1, outcome="refused")
    reply = connection.post("/convert", review(OLD, NO_JOB))
    assert reply.status == 200
    message = "MPIJob b/a: spec.mpiReplicaSpecs: is not set, so there is nothing to run"
    assert reply.answer == {"uid": "1", "convertedObjects": [], "result": {"status": "Failure", "message": message}}
    assert shared.metric("conversions_total", version=V2BETA1, outcome="refused") == before + 1
    assert {"version": V2BETA1, "namespace": "b", "name": "a"}.items() <= shared.log("conversion refused")[-1].items()


def test_invalid_stored_job_is_replaced_by_a_suspended_job_without_pods(shared: Live, connection: Connection) -> None:
    stored = {**NO_JOB, "metadata": {"name": "a", "namespace": "b", "uid": "7"}}
    (stand_in,) = connection.post("/convert", review(stored)).answer["convertedObjects"]
    assert stand_in["spec"]["runPolicy"] == {"suspend": True}
    assert shared.metric("conversions_total", version=V2BETA1, outcome="stand-in") == 1
    assert connection.post("/convert", review(stand_in, version=V1)).answer["convertedObjects"] == [stored]


@pytest.mark.parametrize("version", ["kubeflow.org/v3", "", 'v"\n' * 1000])
def test_unknown_version_is_rejected(shared: Live, connection: Connection, version: str) -> None:
    reply = connection.post("/convert", review(OLD, version=version))
    assert "is not a known version of MPIJob" in reply.answer["result"]["message"]
    assert len(reply.body) < 500
    assert shared.metric("conversions_total", version="unknown", outcome="refused") >= 1


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"{",
        b"[" * 100_000,
        body(GOOD),
        review(OLD).replace(b"apiextensions.k8s.io/v1", b"apiextensions.k8s.io/v9"),
        review(1),
        review(OLD, 1),
        review(OLD).replace(b'"image":', b'"x": ' + b"[" * 600 + b"]" * 600 + b', "image":'),
        review(OLD, uid=""),
        review(OLD, uid="x" * 1000),
        review(OLD, objects=None),
    ],
)
def test_invalid_conversion_review_is_rejected(connection: Connection, sent: bytes) -> None:
    reply = connection.post("/convert", sent)
    assert reply.status == 400
    assert reply.body.startswith(b"not a review that can be answered: ")


def test_internal_error_gives_status_500(shared: Live, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(reviews.both_ways, "convert", fail)
    reply = connection.post("/convert", review(OLD))
    assert (reply.status, reply.body) == (500, b"a fault in the webhook service, see its log\n")
    assert shared.metric("internal_errors_total", webhook="convert") == 1


def test_request_beyond_the_deadline_gives_status_504(shared: Live, connection: Connection) -> None:
    reply = connection.post("/convert?timeout=1ns", review(OLD))
    assert reply.status == 504
    assert shared.metric("deadline_exceeded_total", webhook="convert") == 1


def test_other_requests_are_served_between_the_conversions_of_two_objects(
    shared: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()
    monkeypatch.setattr(reviews, "asyncio", SimpleNamespace(sleep=lambda _: go_on.wait()))
    first = shared.connect()
    two = review(OLD, OLD)
    first.send(head("/convert?timeout=600s", content_length=str(len(two))), two)
    shared.wait_until(lambda: shared.service.server.in_flight)
    assert shared.post("/validate-mpijob?timeout=600s", body(GOOD)).answer["allowed"]
    assert shared.service.server.in_flight == 1
    shared.loop.call_soon_threadsafe(go_on.set)
    assert len(first.receive().answer["convertedObjects"]) == 2
    first.close()


def decoded_jobs() -> int:
    return sum(type(value) is dict and value.get("kind") == "MPIJob" for value in gc.get_objects())


def test_no_decoded_object_is_in_memory_while_other_requests_are_served(
    shared: Live, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoded objects may need 20 times the memory of the body or more, and many reviews may wait at the same time."""
    counts: list[int] = []

    async def count(_: float) -> None:
        gc.collect()
        counts.append(decoded_jobs())

    gc.collect()  # removes garbage of other tests
    before = decoded_jobs()
    monkeypatch.setattr(reviews, "asyncio", SimpleNamespace(sleep=count))
    assert connection.post("/convert?timeout=600s", review(*[OLD] * 4)).status == 200
    assert counts == [before] * 3


def many(count: int, **metadata: Any) -> dict[str, Any]:
    """An older job with `count` environment variables."""
    job = deepcopy(OLD)
    job["metadata"] = {**job["metadata"], **metadata}
    container = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": f"E{number}", "value": "v"} for number in range(count)]
    return job


def test_job_too_expensive_to_convert_is_rejected_unless_it_is_stored(
    shared: Live, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_expensive(_: object) -> NoReturn:
        raise TooExpensive

    monkeypatch.setattr(reviews, "limited", too_expensive)
    reply = connection.post("/convert", review(many(1)))
    assert "too expensive to convert" in reply.answer["result"]["message"]
    (stand_in,) = connection.post("/convert", review(many(1, uid="7"))).answer["convertedObjects"]
    assert stand_in["spec"] == both_ways.NO_JOB
    assert shared.metric("too_expensive_total", webhook="convert") == 2


def test_job_too_large_to_judge_is_rejected_unless_it_is_stored(connection: Connection) -> None:
    reply = connection.post("/convert?timeout=600s", review(many(60_000)))
    assert reply.status == 200
    message = reply.answer["result"]["message"]
    assert message.startswith("MPIJob team-a/train: spec: too large to judge: ")
    assert len(message) < 200
    (stand_in,) = connection.post("/convert?timeout=600s", review(many(60_000, uid="7"))).answer["convertedObjects"]
    assert stand_in["spec"] == both_ways.NO_JOB
    large = {**many(60_000), "apiVersion": V2BETA1}
    del large["spec"]["cleanPodPolicy"]
    (older,) = connection.post("/convert?timeout=600s", review(large, version=V1)).answer["convertedObjects"]
    assert older["spec"] == large["spec"]
    assert connection.post("/convert?timeout=600s", review(older)).answer["convertedObjects"] == [large]


def test_conversion_is_off_by_default() -> None:
    with live() as service:
        reply = service.post("/convert", review(OLD))
    assert (reply.status, reply.body) == (404, b"versions are converted only with --conversion\n")


def test_client_certificates_exclude_conversion() -> None:
    with pytest.raises(StartError, match="--conversion excludes --client-ca"):
        settings.check(ServeSettings(options={"--conversion"}, client_ca=Path("ca.pem"), client_names=("api",)))
