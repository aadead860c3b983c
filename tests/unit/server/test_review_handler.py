"""The replies to reviews over HTTPS and to arbitrary bytes."""

import json
from base64 import b64decode

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import jobs, strategies
from tests.support.live_service import head, live
from tests.support.reviews_to_send import GOOD, HOOKS, ONE_WORKER, UID
from webhook.server import review_handler


def test_good_job_is_mutated_and_admitted(connection):
    mutated = connection.post("/mutate-mpijob?timeout=5s", GOOD)
    assert mutated.status == 200
    assert (mutated.headers["content-type"], "connection" in mutated.headers) == ("application/json", False)
    review = json.loads(mutated.body)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    answer = review["response"]
    assert (answer["uid"], answer["allowed"], answer["patchType"]) == (UID, True, "JSONPatch")
    patched = jsonpatch.apply_patch(jobs.GOOD, json.loads(b64decode(answer["patch"])))
    assert patched["metadata"]["labels"]["training.kubeflow.org/job-type"] == "mpijob"

    validated = connection.post("/validate-mpijob?timeout=5s", jobs.body(patched))  # the connection is reused
    assert (validated.status, validated.answer["uid"], validated.answer["allowed"]) == (200, UID, True)
    assert "patch" not in validated.answer


@pytest.mark.parametrize("version", ["v1", "v1alpha2", "v2", "", "v" * 1000, 'v1"\n'])
def test_other_api_version_is_denied_by_the_validating_webhook_alone(connection, version):
    body = jobs.body(jobs.GOOD, kind={"group": "kubeflow.org", "version": version, "kind": "MPIJob"})
    mutated = connection.post("/mutate-mpijob", body)
    assert (mutated.status, mutated.answer["allowed"], "patch" in mutated.answer) == (200, True, False)
    denied = connection.post("/validate-mpijob", body)
    (cause,) = denied.answer["status"]["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("apiVersion", "FieldValueNotSupported")
    assert "Write kubeflow.org/v2beta1" in cause["message"] or "mpijob-webhook convert" in cause["message"]
    assert len(cause["message"]) < 300


def test_message_about_another_api_version_names_the_fix(connection):
    body = jobs.body(jobs.GOOD, kind={"group": "kubeflow.org", "version": "v1", "kind": "MPIJob"})
    assert connection.post("/validate-mpijob", body).answer["status"]["message"] == (
        'MPIJob "train" was rejected: 1 problem\n'
        '1. apiVersion: "kubeflow.org/v1" is not served, the MPI operator knows only kubeflow.org/v2beta1 [schema]\n'
        "   Write kubeflow.org/v2beta1, or run `mpijob-webhook convert FILE`, which also says what the image needs."
    )


@pytest.mark.parametrize(
    "kind",
    [
        {"group": "", "version": "v1", "kind": "Pod"},
        {"group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob"},
        {"group": "example.com", "version": "v2beta1", "kind": "MPIJob"},
    ],
)
@pytest.mark.parametrize("path", HOOKS)
def test_other_kinds_are_allowed_unchanged(connection, path, kind):
    response = connection.post(path, jobs.body({"metadata": {"name": "x"}}, kind=kind))
    assert response.answer == {"uid": UID, "allowed": True, "auditAnnotations": {"skipped": "not an MPIJob"}}


def test_text_of_an_internal_error_is_not_in_log_or_reply(monkeypatch):
    def broken(*_, **__):
        raise KeyError("secret of a user")

    with live() as service:
        monkeypatch.setattr(review_handler, "decide", broken)
        response = service.post("/validate-mpijob", ONE_WORKER)
        assert (response.status, response.body) == (500, b"a fault in the webhook service, see its log\n")
        assert service.metric("internal_errors_total", webhook="validate") == 1
        (line,) = service.log("internal error")
        assert (line["error"], line["level"], line["webhook"]) == ("builtins.KeyError", "error", "validate")
        assert any("test_review_handler.py" in frame for frame in line["traceback"])
        assert "secret" not in service.log_text()
        monkeypatch.undo()
        assert service.post("/validate-mpijob", ONE_WORKER).status == 200


@pytest.mark.parametrize(("version", "headers"), [("1.1", {"connection": "close"}), ("1.0", {})])
def test_connection_closes_if_the_client_requests_it(shared, version, headers):
    connection = shared.connect()
    connection.send(head("/validate-mpijob", version=version, content_length=str(len(GOOD)), **headers), GOOD)
    response = connection.receive()
    assert response.status == 200
    assert connection.closed
    connection.close()


def never_a_verdict_without_uid(response, body):
    assert response.status in {200, 400}
    if response.status == 200:
        assert response.answer["uid"] == json.loads(body)["request"]["uid"] != ""


@strategies.PROPERTY
@given(path=st.sampled_from(HOOKS), body=st.binary(max_size=200))
def test_any_bytes_get_no_verdict_without_a_uid(shared, path, body):
    assert shared.post(path, body).status == 400


@strategies.PROPERTY
@given(path=st.sampled_from(HOOKS), value=strategies.json_values())
def test_any_json_gets_no_verdict_without_a_uid(shared, path, value):
    body = json.dumps(value).encode()
    never_a_verdict_without_uid(shared.post(path, body), body)


@strategies.PROPERTY
@given(
    path=st.sampled_from(HOOKS),
    field=st.sampled_from([*json.loads(GOOD)["request"], "subResource"]),
    value=strategies.json_values(),
)
def test_any_json_in_any_field_gets_no_verdict_without_a_uid(shared, path, field, value):
    review = json.loads(GOOD)
    review["request"][field] = value
    body = json.dumps(review).encode()
    never_a_verdict_without_uid(shared.post(path, body), body)
