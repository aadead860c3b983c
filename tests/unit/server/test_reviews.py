import asyncio
import json
from base64 import b64decode
from http import HTTPStatus

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import jobs, quota_objects, strategies
from tests.support.live_service import head, live
from webhook.client.calls import ClusterError
from webhook.server import http_protocol, requests, reviews
from webhook.server.requests import MAX_BODY

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
GOOD = jobs.body(jobs.GOOD)
COMMAND = "Launcher.template.spec.containers.0.command"
# As many ranks as there are slots: eight would be one fault more.
ONE_WORKER = jobs.body(jobs.changed({"Worker.replicas": 1, COMMAND: ["mpirun", "python"]}))
HOOKS = ["/mutate-mpijob", "/validate-mpijob"]


@pytest.fixture(scope="module")
def shared():
    """One service for all tests that leave no trace in it but counts and log lines."""
    with live() as service:
        yield service


@pytest.fixture
def connection(shared):
    opened = shared.connect()
    yield opened
    opened.close()


# Decisions


def test_a_good_job_is_mutated_and_admitted(connection):
    mutated = connection.post("/mutate-mpijob?timeout=5s", GOOD)
    assert mutated.status == 200
    assert mutated.headers == {"content-type": "application/json", "content-length": str(len(mutated.body))}
    review = json.loads(mutated.body)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    answer = review["response"]
    assert (answer["uid"], answer["allowed"], answer["patchType"]) == (UID, True, "JSONPatch")
    patched = jsonpatch.apply_patch(jobs.GOOD, json.loads(b64decode(answer["patch"])))
    assert patched["metadata"]["labels"]["training.kubeflow.org/job-type"] == "mpijob"

    validated = connection.post("/validate-mpijob?timeout=5s", jobs.body(patched))  # on the same connection
    assert (validated.status, validated.answer["uid"], validated.answer["allowed"]) == (200, UID, True)
    assert "patch" not in validated.answer


def test_a_bad_job_is_denied_with_causes(connection):
    denied = connection.post("/validate-mpijob?timeout=5s", ONE_WORKER)
    assert denied.status == 200
    status = denied.answer["status"]
    assert not denied.answer["allowed"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert "at least 2 required" in status["message"]
    assert status["details"]["causes"][0]["field"] == "spec.mpiReplicaSpecs[Worker].replicas"


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
@pytest.mark.parametrize("path", HOOKS)
def test_operations_that_are_not_ours_are_allowed(connection, path, operation):
    response = connection.post(path, jobs.body(None, operation=operation, name="train"))
    assert (response.status, response.answer["uid"], response.answer["allowed"]) == (200, UID, True)
    assert "patch" not in response.answer


def test_an_update_that_takes_nothing_away_gets_no_patch(connection):
    response = connection.post("/mutate-mpijob", jobs.body(jobs.GOOD, old=jobs.GOOD))
    assert (response.status, response.answer["allowed"], "patch" in response.answer) == (200, True, False)


@pytest.mark.parametrize("version", ["v1", "v1alpha2", "v2", "", "v" * 1000, 'v1"\n'])
def test_another_api_version_is_denied_by_validate_alone(connection, version):
    body = jobs.body(jobs.GOOD, kind={"group": "kubeflow.org", "version": version, "kind": "MPIJob"})
    mutated = connection.post("/mutate-mpijob", body)
    assert (mutated.status, mutated.answer["allowed"], "patch" in mutated.answer) == (200, True, False)
    denied = connection.post("/validate-mpijob", body)
    (cause,) = denied.answer["status"]["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("apiVersion", "FieldValueNotSupported")
    assert "Set apiVersion to kubeflow.org/v2beta1" in cause["message"] or "mpijob-webhook convert" in cause["message"]
    assert len(cause["message"]) < 300


def test_the_message_for_another_api_version(connection):
    body = jobs.body(jobs.GOOD, kind={"group": "kubeflow.org", "version": "v1", "kind": "MPIJob"})
    assert connection.post("/validate-mpijob", body).answer["status"]["message"] == (
        'MPIJob "train" is refused, 1 problem to mend:\n'
        '1. apiVersion: "kubeflow.org/v1" is not served, the MPI operator knows only kubeflow.org/v2beta1 [schema]\n'
        "   Run `mpijob-webhook convert FILE`: it writes the job anew, and says what is left to do."
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
def test_other_kinds_are_allowed_untouched(connection, path, kind):
    response = connection.post(path, jobs.body({"metadata": {"name": "x"}}, kind=kind))
    assert response.answer == {"uid": UID, "allowed": True, "auditAnnotations": {"skipped": "not an MPIJob"}}


# What is no review

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
def test_what_is_no_review_is_a_400(connection, path, body):
    response = connection.post(path, body)
    assert (response.status, response.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert response.body.startswith(b"not a review that can be answered")
    assert len(response.body) < 400
    assert connection.post("/validate-mpijob", GOOD).status == 200  # the connection is still good


@pytest.mark.parametrize(
    "hidden", [b'"\xff"', b"1e999", b'"\\ud800"', b"[" * 900 + b"]" * 900], ids=["UTF-8", "float", "surrogate", "deep"]
)
def test_faults_inside_of_the_object_are_never_a_500(connection, hidden):
    body = GOOD.replace(b'"slotsPerWorker":2', b'"slotsPerWorker":2, "unknown": ' + hidden, 1)
    for path in HOOKS:
        assert connection.post(path, body).status in {200, 400}


@pytest.mark.parametrize(
    ("request_line", "headers", "refusal"),
    [
        ("POST /", {}, "404 there is no such path here"),
        ("POST /mutate-mpijob/", {}, "404 there is no such path here"),
        ("POST //validate-mpijob", {}, "404 there is no such path here"),
        ("POST /validate-mpijob%20", {}, "404 there is no such path here"),
        ("GET /metrics", {}, "404 there is no such path here"),
        ("GET /validate-mpijob", {}, "405 reviews are sent with POST"),
        ("PUT /mutate-mpijob", {}, "405 reviews are sent with POST"),
        ("POST /validate-mpijob", {"content_type": ""}, "415 the content type must be application/json"),
        ("POST /validate-mpijob", {"content_type": "text/json"}, "415 the content type must be application/json"),
        (
            "POST /validate-mpijob",
            {"content_type": "application/jsonx"},
            "415 the content type must be application/json",
        ),
        ("POST /mutate-mpijob", {"content_encoding": "gzip"}, "415 the body must not be compressed"),
    ],
)
def test_requests_that_are_refused_unread(shared, request_line, headers, refusal):
    method, path = request_line.split()
    connection = shared.connect()
    connection.send(head(path, method=method, content_length=str(len(GOOD)), **headers), GOOD)
    response = connection.receive()
    assert f"{response.status} {response.body.decode()}" == refusal + "\n"
    assert response.headers.get("allow") == ("POST" if response.status == 405 else None)
    connection.close()


def test_a_head_request(shared):
    connection = shared.connect()
    connection.send(head("/validate-mpijob", method="HEAD", content_type="", connection="close"))
    response_head = connection._received.read()
    assert response_head.startswith(b"HTTP/1.1 405 ")
    assert response_head.endswith(b"\r\n\r\n")
    connection.close()


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON", "application/json ;q=1"])
def test_spellings_of_the_content_type(connection, kind):
    assert connection.post("/validate-mpijob", GOOD, content_type=kind).status == 200


def test_what_is_no_http_is_a_400_without_its_text_in_the_log(shared):
    connection = shared.connect()
    connection.send(b"\x16\x03\x01 secret\r\n\r\n")
    assert connection.receive().status == 400
    connection.close()
    assert "secret" not in shared.log_text()


# Bodies: large, slow, in pieces


def padded(size):
    return GOOD + b" " * (size - len(GOOD))


def test_a_body_as_large_as_the_api_server_sends(shared):
    assert shared.post("/validate-mpijob", padded(MAX_BODY)).status == 200


def test_a_body_beyond_the_limit(shared):
    response = shared.post("/validate-mpijob", padded(MAX_BODY + 1))
    assert (response.status, response.body) == (413, b"the body is larger than 7340032 bytes\n")


def test_a_length_beyond_the_limit_is_refused_before_the_body_comes(shared):
    connection = shared.connect()
    connection.send(head("/validate-mpijob", content_length=str(10**12)))
    assert connection.receive().status == 413
    connection.close()


def chunks(body, size):
    for start in range(0, len(body), size):
        piece = body[start : start + size]
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("body", "size", "status"),
    [(GOOD, 1, 200), (GOOD, 1000, 200), (padded(MAX_BODY), 2**20, 200), (padded(MAX_BODY + 1), 2**20, 413)],
    ids=["bytes", "kilobytes", "at the limit", "beyond the limit"],
)
def test_chunked_uploads(shared, body, size, status):
    connection = shared.connect()
    connection.send(head("/validate-mpijob", transfer_encoding="chunked"), *chunks(body, size))
    assert connection.receive().status == status
    connection.close()


def test_broken_chunks_are_a_400(shared):
    connection = shared.connect()
    connection.send(head("/validate-mpijob", transfer_encoding="chunked"), b"5\r\n{", b"}}}}\r\nxyz\r\n")
    assert connection.receive().status == 400
    connection.close()


def test_a_body_in_many_small_pieces(connection):
    connection.send(head("/validate-mpijob", content_length=str(len(GOOD))))
    for start in range(0, len(GOOD), 100):
        connection.send(GOOD[start : start + 100])
    assert connection.receive().status == 200


def test_a_client_that_asks_before_it_sends(connection):
    connection.send(head("/validate-mpijob", content_length=str(len(GOOD)), expect="100-continue"))
    assert connection.receive().status == 100
    connection.send(GOOD)
    assert connection.receive().status == 200


@pytest.mark.parametrize("sent", [b"", GOOD[:100]], ids=["nothing", "the beginning"])
def test_a_body_that_does_not_come_is_a_504(sent):
    with live() as service:
        connection = service.connect()
        connection.send(head("/validate-mpijob?timeout=50ms", content_length=str(len(GOOD))), sent)
        response = connection.receive()
        connection.close()
        assert (response.status, response.body) == (504, b"no verdict within 0.04 s\n")
        assert service.metric("deadline_exceeded_total", webhook="validate") == 1
        assert service.metric("in_flight") == 0


def test_a_client_that_goes_away_in_the_middle():
    with live() as service:
        connection = service.connect()
        connection.send(head("/mutate-mpijob", content_length=str(len(GOOD))), GOOD[:100])
        service.wait_until(lambda: service.service.server.in_flight == 1)
        connection.close()
        service.wait_until(lambda: service.log("refused"))
        (line,) = service.log("refused")
        assert (line["code"], line["reason"], line["level"]) == (400, "the body broke off", "warning")
        assert service.metric("internal_errors_total", webhook="mutate") == 0
        assert service.post("/mutate-mpijob", GOOD).status == 200


# Deadlines, overload, faults


@pytest.mark.parametrize(
    ("timeout", "status"), [("1ms", 504), ("30s", 200), ("", 200), ("soon", 200), ("-1s", 200), ("0s", 200)]
)
def test_the_clients_timeout(connection, timeout, status):
    assert connection.post(f"/validate-mpijob?timeout={timeout}", GOOD).status == status


def test_our_own_timeout_counts_where_it_is_shorter():
    with live(timeout_seconds=0.001) as service:
        response = service.post("/validate-mpijob?timeout=30s", GOOD)
        assert (response.status, response.body) == (504, b"no verdict within 0.0008 s\n")
        assert service.log("refused")[-1]["code"] == 504


def test_half_sent_bodies_keep_nobody_out():
    """64 of them closed the service for seven seconds, again and again."""
    with live() as service:
        slow = [service.connect() for _ in range(100)]
        for connection in slow:
            connection.send(head("/validate-mpijob", content_length=str(len(GOOD))), GOOD[:10])
        service.wait_until(lambda: service.service.server.in_flight == 100)
        assert service.metric("in_flight") == 100
        assert service.post("/validate-mpijob", GOOD).status == 200
        for connection in slow:
            connection.send(GOOD[10:])
            assert connection.receive().status == 200
            connection.close()
        assert service.metric("in_flight") == 0


def test_large_bodies_have_a_bound_all_together():
    with live() as service:
        budget = service.service.server.memory
        budget.in_all = budget.of_one_peer = 300_000
        slow = service.connect()
        slow.send(head("/validate-mpijob", content_length="200001"), b" " * 200_000)
        service.wait_until(lambda: budget.held.total() >= 190_000)
        large = service.post("/validate-mpijob", b" " * 200_000 + GOOD)
        assert (large.status, large.body) == (503, b"too many large bodies at once\n")
        assert service.metric("shed_total", webhook="validate") == 1
        assert service.log("refused") == []
        assert service.post("/validate-mpijob", GOOD).status == 200
        slow.close()
        service.wait_until(lambda: not budget.held)
        assert service.post("/validate-mpijob", b" " * 200_000 + GOOD).status == 200
        assert budget.held == {}


def test_a_peer_that_sends_and_never_reads_is_cut_off(monkeypatch):
    """One such connection took 480 MB: replies were kept for it without end."""
    monkeypatch.setattr(http_protocol, "SEND_SECONDS", 0.2)
    with live() as service:
        connection = service.connect()
        request = head("/mutate-mpijob", content_length=str(len(GOOD))) + GOOD
        connection.socket.settimeout(60)
        with pytest.raises(OSError, match=r"reset|Broken pipe|EOF"):
            connection.send(*[request] * 20_000)
        reviews = 'mpijob_webhook_reviews_total{decision="allowed"'
        answered = sum(float(line.split()[-1]) for line in service.ops("/metrics").splitlines() if reviews in line)
        # What the sockets hold, and not much more.
        assert answered < 10_000
        assert service.post("/mutate-mpijob", GOOD).status == 200
        connection.close()


def test_a_peer_that_never_reads_its_refusals_is_cut_off_too(monkeypatch):
    """It would hold its connection for ever, and a share of those that everybody has."""

    def refusing(*_):
        raise requests.Refused(HTTPStatus.NOT_FOUND, "x" * 20_000)

    monkeypatch.setattr(http_protocol, "SEND_SECONDS", 0.2)
    with live() as service:
        connection = service.connect()
        connection.socket.settimeout(60)
        monkeypatch.setattr(reviews, "expect_review", refusing)
        with pytest.raises(OSError, match=r"reset|Broken pipe|EOF"):
            connection.send(*[head("/validate-mpijob", content_length="0")] * 100_000)
        monkeypatch.undo()
        assert service.post("/mutate-mpijob", GOOD).status == 200
        connection.close()


@pytest.mark.parametrize("size", [257, 2**20])
def test_a_uid_of_any_length_is_not_sent_back(connection, size):
    response = connection.post("/validate-mpijob", jobs.body(jobs.GOOD, uid="u" * size))
    assert (response.status, len(response.body) < 200) == (400, True)


class SlowCluster:
    """A cluster of which everything takes as long as the test wants."""

    def __init__(self):
        self.over = asyncio.Event()
        self.cancelled = 0
        self.asked = 0

    async def _wait(self):
        self.asked += 1
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def may_exempt(self, request, rules):
        await self._wait()
        return dict.fromkeys(rules, True)

    async def policy_impact(self, before, after, *, today, time_left):
        await self._wait()
        return ["it would change nothing"]


GPUS = {"requests.nvidia.com/gpu": 8}
QUOTA = quota_objects.quota(GPUS)


def exempting():
    """A job that asks to be exempted from the rule that it violates."""
    exempt = {"training.openshift.io/exempt": "worker-count", "training.openshift.io/exempt-reason": "a test"}
    return jobs.body(
        jobs.changed({"metadata.annotations": exempt, "Worker.replicas": 1, COMMAND: ["mpirun", "python"]})
    )


def test_reviews_that_wait_for_the_cluster_keep_no_others_out():
    """64 reviews that waited for a SubjectAccessReview closed the service to everybody."""
    with live(max_in_flight=3) as service:
        cluster = service.service.handler.cluster = SlowCluster()
        waiting = [service.connect() for _ in range(3)]
        for connection in waiting:
            body = exempting()
            connection.send(head("/validate-mpijob", content_length=str(len(body))), body)
        service.wait_until(lambda: cluster.asked == 3)
        assert service.post("/validate-mpijob", GOOD).status == 200
        more = service.post("/validate-mpijob", exempting())
        assert (more.status, more.body) == (503, b"too many reviews wait for the cluster\n")
        assert service.metric("shed_total", webhook="validate") == 1
        service.loop.call_soon_threadsafe(cluster.over.set)
        for connection in waiting:
            assert connection.receive().answer["allowed"] is True
            connection.close()


def test_the_cluster_gets_what_is_left_of_the_requests_own_time():
    with live() as service:
        cluster = service.service.handler.cluster = SlowCluster()
        response = service.post("/validate-mpijob?timeout=1s", exempting())
        assert (response.status, response.body) == (504, b"no verdict within 0.8 s\n")
        assert (cluster.asked, cluster.cancelled) == (1, 1)
        assert service.metric("deadline_exceeded_total", webhook="validate") == 1


def test_a_cluster_that_does_not_answer_is_counted_and_logged_as_that():
    class Broken(SlowCluster):
        async def may_exempt(self, request, rules):
            raise ClusterError("it is away")

    with live() as service:
        service.service.handler.cluster = Broken()
        assert service.post("/validate-mpijob", exempting()).status == 503
        assert service.metric("cluster_errors_total", webhook="validate") == 1
        assert service.metric("shed_total", webhook="validate") == 0
        (line,) = service.log("refused")
        assert (line["code"], line["reason"]) == (503, "the cluster does not answer")
        assert service.metric("review_duration_seconds_count", webhook="validate") == 1


@pytest.mark.parametrize("usable", [True, False])
def test_what_is_reserved_is_asked_of_the_ledger_and_of_the_cache_only_where_that_fails(usable):
    class Quotas(SlowCluster):
        async def by_quota(self, namespace, decide, *, first, writes, seconds):
            if not usable:
                raise ClusterError("it is away")
            return decide(quota_objects.cluster(QUOTA))

    with live() as service:
        service.service.handler.cluster = Quotas()
        service.service.handler.view = quota_objects.cluster(QUOTA, quota_objects.reserved("other", GPUS, 1))
        answer = service.post("/validate-mpijob", GOOD).answer
        assert answer["allowed"] is usable
        assert usable or "Quota exceeded" in answer["status"]["message"]


def test_a_fault_of_ours_is_a_500_and_its_text_stays_out_of_log_and_reply(monkeypatch):
    def broken(*_, **__):
        raise KeyError("secret of a user")

    with live() as service:
        monkeypatch.setattr(reviews, "decide", broken)
        response = service.post("/validate-mpijob", ONE_WORKER)
        assert (response.status, response.body) == (500, b"a fault in the webhook service, see its log\n")
        assert service.metric("internal_errors_total", webhook="validate") == 1
        (line,) = service.log("internal error")
        assert (line["error"], line["level"], line["webhook"]) == ("builtins.KeyError", "error", "validate")
        assert any("test_reviews.py" in frame for frame in line["traceback"])
        assert "secret" not in service.log_text()
        monkeypatch.undo()
        assert service.post("/validate-mpijob", ONE_WORKER).status == 200


# Connections


def test_a_connection_serves_many_reviews(connection):
    for _ in range(20):
        assert connection.post("/validate-mpijob", GOOD).status == 200


def test_pipelined_reviews_are_answered_in_order(connection):
    bodies = [GOOD, ONE_WORKER, GOOD]
    connection.send(*(head("/validate-mpijob", content_length=str(len(body))) + body for body in bodies))
    assert [connection.receive().answer["allowed"] for _ in bodies] == [True, False, True]


@pytest.mark.parametrize(("version", "headers"), [("1.1", {"connection": "close"}), ("1.0", {})])
def test_clients_that_want_one_reply_only(shared, version, headers):
    connection = shared.connect()
    connection.send(head("/validate-mpijob", version=version, content_length=str(len(GOOD)), **headers), GOOD)
    response = connection.receive()
    assert (response.status, response.headers["connection"]) == (200, "close")
    assert connection.closed
    connection.close()


# Anything at all


def never_a_verdict_without_uid(response, body):
    assert response.status in {200, 400}
    if response.status == 200:
        assert response.answer["uid"] == json.loads(body)["request"]["uid"] != ""


@strategies.PROPERTY
@given(path=st.sampled_from(HOOKS), body=st.binary(max_size=200))
def test_any_bytes(shared, path, body):
    assert shared.post(path, body).status == 400


@strategies.PROPERTY
@given(path=st.sampled_from(HOOKS), value=strategies.json_values())
def test_any_json(shared, path, value):
    body = json.dumps(value).encode()
    never_a_verdict_without_uid(shared.post(path, body), body)


@strategies.PROPERTY
@given(
    path=st.sampled_from(HOOKS),
    field=st.sampled_from([*json.loads(GOOD)["request"], "subResource"]),
    value=strategies.json_values(),
)
def test_any_json_in_any_field_of_the_request(shared, path, field, value):
    review = json.loads(GOOD)
    review["request"][field] = value
    body = json.dumps(review).encode()
    never_a_verdict_without_uid(shared.post(path, body), body)
