"""Requests that are not reviews are rejected. If the head shows the fault, the body is not read."""

import pytest

from tests.support.live_service import head
from tests.support.reviews_to_send import GOOD, HOOKS, UID

NO_REVIEWS = {
    "empty": b"",
    "no JSON": b"hello",
    "truncated": GOOD[:-20],
    "trailing garbage": GOOD + b"x",
    "null": b"null",
    "a list": b"[]",
    "empty object": b"{}",
    "request null": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}',
    "no request": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
    "uid missing": GOOD.replace(b'"uid"', b'"uuid"', 1),
    "uid empty": GOOD.replace(UID.encode(), b"", 1),
    "uid null": GOOD.replace(f'"{UID}"'.encode(), b"null", 1),
    "uid a number": GOOD.replace(f'"{UID}"'.encode(), b"7", 1),
    "v1beta1": GOOD.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1", 1),
    "another kind of review": GOOD.replace(b"AdmissionReview", b"TokenReview", 1),
    "unknown operation": GOOD.replace(b'"CREATE"', b'"PATCH"', 1),
    "100,000 lists": b"[" * 100_000,
    "100,000 lists in a review": GOOD.replace(b'"dryRun":false', b'"dryRun":' + b"[" * 100_000),
    "100,000 objects in the job": GOOD.replace(b'"slotsPerWorker":2', b'"x":' + b'{"x":' * 100_000, 1),
    "NaN": GOOD.replace(b'"slotsPerWorker":2', b'"slotsPerWorker":NaN', 1),
    "half a surrogate": GOOD.replace(b'"alice"', b'"\\ud800"', 1),
    "invalid UTF-8": GOOD.replace(b'"alice"', b'"\xff"', 1),
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
}


@pytest.mark.parametrize("path", HOOKS)
@pytest.mark.parametrize("body", NO_REVIEWS.values(), ids=NO_REVIEWS)
def test_invalid_review_is_a_400(connection, path, body):
    response = connection.post(path, body)
    assert (response.status, response.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert response.body.startswith(b"not a review that can be answered")
    assert len(response.body) < 400
    assert connection.post("/validate-mpijob", GOOD).status == 200  # the connection can still be used


@pytest.mark.parametrize(
    "hidden",
    [b'"\xff"', b"1e999", b'"\\ud800"', b"[" * 900 + b"]" * 900],
    ids=["invalid UTF-8", "too large number", "half a surrogate pair", "deep nesting"],
)
def test_fault_inside_the_object_is_never_a_500(connection, hidden):
    body = GOOD.replace(b'"slotsPerWorker":2', b'"slotsPerWorker":2, "unknown": ' + hidden, 1)
    for path in HOOKS:
        assert connection.post(path, body).status in {200, 400}


@pytest.mark.parametrize(
    ("request_line", "headers", "refusal"),
    [
        ("POST /", {}, "404 there is no such path here"),
        ("POST //validate-mpijob", {}, "404 there is no such path here"),
        ("POST /validate-mpijob%20", {}, "404 there is no such path here"),
        ("GET /metrics", {}, "404 there is no such path here"),
        ("GET /validate-mpijob", {}, "405 reviews are sent with POST"),
        ("PUT /mutate-mpijob", {}, "405 reviews are sent with POST"),
        ("POST /validate-mpijob", {"content_type": ""}, "415 the content type must be application/json"),
        ("POST /mutate-mpijob", {"content_type": "application/jsonx"}, "415 the content type must be application/json"),
        ("POST /mutate-mpijob", {"content_encoding": "gzip"}, "415 the body must not be compressed"),
    ],
)
def test_request_is_rejected_without_reading_its_body(shared, request_line, headers, refusal):
    method, path = request_line.split()
    connection = shared.connect()
    connection.send(head(path, method=method, content_length=str(len(GOOD)), **headers), GOOD)
    response = connection.receive()
    assert f"{response.status} {response.body.decode()}" == refusal + "\n"
    assert response.headers.get("allow") == ("POST" if response.status == 405 else None)
    connection.close()


def test_head_request_is_rejected(shared):
    connection = shared.connect()
    connection.send(head("/validate-mpijob", method="HEAD", content_type="", connection="close"))
    response_head = connection._received.read()
    assert response_head.startswith(b"HTTP/1.1 405 ")
    assert response_head.endswith(b"\r\n\r\n")
    connection.close()


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON", "application/json ;q=1"])
def test_other_spellings_of_the_content_type_are_accepted(connection, kind):
    assert connection.post("/validate-mpijob", GOOD, content_type=kind).status == 200


def test_invalid_http_is_a_400_without_its_text_in_the_log(shared):
    connection = shared.connect()
    connection.send(b"\x16\x03\x01 secret\r\n\r\n")
    assert connection.receive().status == 400
    connection.close()
    assert "secret" not in shared.log_text()
