"""Requests to `/mutate-ssh-secret` of a running service, over HTTPS."""

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import jobs, strategies
from tests.support.live_service import live
from tests.support.policies import HEADER
from tests.support.secret_reviews import OPERATORS, body, is_pair, keys_of, patch_of, patched, secret
from webhook.controllers.ssh import pool

PATH = "/mutate-ssh-secret"
POLICY = HEADER + "sshKeys: {}\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "policy.yaml"
    path.write_text(POLICY.format("ed25519"))
    with live(policy=path, max_in_flight=1) as running:
        yield running


def test_secret_gets_a_key_pair_by_default():
    with live(timeout_seconds=25) as running:  # a busy machine needs a long time to find two primes
        answer = running.post(PATH, body(OPERATORS)).answer
        private, public = keys_of(patched(OPERATORS, patch_of(answer)))
        assert is_pair(private, public, "rsa-4096")
        assert answer["auditAnnotations"] == {
            "injected": "ssh-keys",
            "ssh-key-fingerprint": pool.KeyPair("rsa-4096", private, public).fingerprint,
        }
        assert running.metric("ssh_key_duration_seconds_count", algorithm="rsa-4096") == 1
        assert running.metric("ssh_key_wait_seconds_count", algorithm="rsa-4096") == 1
        assert running.metric("patch_ops_total", injection="ssh-keys") == 1
        labels = {"webhook": "ssh-keys", "operation": "CREATE", "decision": "allowed", "dry_run": "false"}
        assert running.metric("reviews_total", **labels) == 1


def test_policy_sets_the_algorithm(service):
    answer = service.post(PATH, body(OPERATORS)).answer
    assert is_pair(*keys_of(patched(OPERATORS, patch_of(answer))), "ed25519")


def test_policy_can_leave_keys_to_the_operator(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY.format("operator"))
    with live(policy=tmp_path / "policy.yaml") as running:
        answer = running.post(PATH, body(OPERATORS)).answer
    assert answer["allowed"] is True
    assert answer["auditAnnotations"] == {"skipped": "the policy leaves SSH keys to the operator"}
    assert "patch" not in answer


def test_spare_keys_are_made():
    with live(ssh_keys_ready=1, ssh_keys_rate=100.0) as running:
        running.wait_until(lambda: running.metric("ssh_keys_ready") == 1)
        assert "patch" in running.post(PATH, body(OPERATORS)).answer


def test_no_spare_keys_are_made_during_a_drain():
    with live(ssh_keys_ready=1000, ssh_keys_rate=100.0) as running:
        running.begin(running.service.drain()).result(30)
        made = running.metric("ssh_key_duration_seconds_count", algorithm="rsa-4096")
        assert made < 1000


def test_review_that_waits_for_a_key_gets_503_without_blocking_other_reviews(monkeypatch):
    """The reply is an error and not a denial, so that the operator tries again."""
    gate = threading.Event()

    def slow(algorithm):
        gate.wait(30)
        return pool.generate("ed25519")

    with live(max_in_flight=1) as running:
        monkeypatch.setattr(running.service.keys, "make", slow)
        waiting = running.connect()
        payload = body(OPERATORS)
        waiting.send(
            f"POST {PATH}?timeout=1s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(payload)}\r\n\r\n".encode(),
            payload,
        )
        running.wait_until(lambda: running.metric("ssh_keys_waiting") == 1)
        assert running.post("/validate-mpijob", jobs.body(jobs.GOOD)).answer["allowed"] is True
        response = waiting.receive()
        assert (response.status, response.body) == (503, b"no SSH key was made in time\n")
        assert running.metric("shed_total", webhook="ssh-keys") == 1
        assert running.metric("ssh_keys_waiting") == 0
        gate.set()
        waiting.close()


def test_failure_to_make_a_key_is_a_500(monkeypatch):
    def fail(algorithm):
        raise RuntimeError("PRIVATE KEY")

    with live() as running:
        monkeypatch.setattr(running.service.keys, "make", fail)
        response = running.post(PATH, body(OPERATORS))
        assert (response.status, response.body) == (500, b"a fault in the webhook service, see its log\n")
        (line,) = running.log("internal error")
        assert line["error"] == "builtins.RuntimeError"
        assert "PRIVATE" not in running.log_text()


# A generated text may occur in the log by chance. This mark does not.
MARK = "hunter2"
values = st.text(max_size=40).map(lambda text: MARK + text)
texts = st.dictionaries(st.sampled_from(["ssh-privatekey", "ssh-publickey", "note"]), values)


@strategies.PROPERTY
@given(data=texts, shape=st.sampled_from(["good", "null", "list", "number"]))
def test_no_key_is_ever_in_the_log_or_the_metrics(service, data, shape):
    """The test covers the service's keys and a user's keys, including invalid ones."""
    broken = {"good": data, "null": None, "list": list(data.values()), "number": {**data, "ssh-privatekey": 7}}[shape]
    answer = service.post(PATH, body(secret(data=broken))).answer
    output = service.log_text() + service.ops("/metrics") + json.dumps({**answer, "patch": ""})
    secrets = [MARK]
    if "patch" in answer:
        private, public = keys_of(patched(OPERATORS, patch_of(answer)))
        secrets += [*private.decode().splitlines()[1:-1], public.decode().split()[1]]
        secrets += patch_of(answer)[0]["value"].values()
    assert [text for text in secrets if text in output] == []


def test_invalid_body_is_not_quoted(service):
    response = service.post(PATH, b'{"kind": "hunter2", "apiVersion": "hunter2", "request": {"object": "hunter2"}}')
    assert response.status == 400
    assert "hunter2" not in service.log_text()
