"""A real signal interrupts a review that takes too much processor time, in a real server process."""

import base64
import http.client
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.jobs import body, changed

# The pipelines never finish for a job with the name "slow".
START = """
import sys
from webhook.admission import pipelines, too_expensive
from webhook.policy import document
from webhook.server.process import ServeSettings, run

def slow(pipeline):
    def run(request, **others):
        while request.name == "slow":
            try:
                sum(range(100))
            except Exception:
                pass
        return pipeline(request, **others)
    return run

pipelines.validate, pipelines.mutate = slow(pipelines.validate), slow(pipelines.mutate)
inject = too_expensive.inject_unskippable

def inject_slowly(request, **others):
    while b'"slow":"yes"' in bytes(request.object):
        pass
    return inject(request, **others)

too_expensive.inject_unskippable = inject_slowly
load = document.load

def read(text, *others):
    while "slow" in text:
        pass
    return load(text, *others)

document.load = read
sys.exit(run(ServeSettings(listen=("127.0.0.1", 0), ops_listen=("127.0.0.1", 0))))
"""


class Server:
    """The process, and its addresses from the log."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        line = self.logged("listening")
        self.address, self.ops = urlsplit(line["address"]).netloc, urlsplit(line["ops"]).netloc
        self.logged("ready")

    def logged(self, event: str) -> dict[str, Any]:
        """The next log line of this event."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            fields: dict[str, Any] = json.loads(line)
            if fields["event"] == event:
                return fields
        raise AssertionError(f"no {event} is logged")

    def post(self, path: str, sent: bytes) -> dict[str, Any]:
        """The response in the reply to a review."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = http.client.HTTPSConnection(self.address, context=context, timeout=60)
        client.request("POST", f"{path}?timeout=30s", sent, {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.loads(client.getresponse().read())["response"]
        client.close()
        return answer

    def metrics(self) -> str:
        client = http.client.HTTPConnection(self.ops, timeout=60)
        client.request("GET", "/metrics")
        text = client.getresponse().read().decode()
        client.close()
        return text


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with subprocess.Popen([sys.executable, "-c", START], stderr=subprocess.PIPE, text=True) as process:
        yield Server(process)
        process.terminate()


def slow(**changes: Any) -> dict[str, Any]:
    return changed({"metadata.name": "slow", **changes})


def test_too_expensive_job_is_rejected_and_other_reviews_continue(server: Server) -> None:
    with ThreadPoolExecutor() as pool:
        rejected = pool.submit(server.post, "/validate-mpijob", body(slow()))
        assert server.post("/validate-mpijob", body(changed()))["allowed"]
        answer = rejected.result()
    assert not answer["allowed"]
    assert "too expensive to judge" in answer["status"]["message"]
    line = server.logged("too expensive to judge")
    assert (line["webhook"], line["namespace"], line["name"]) == ("validate", "team-a", "slow")
    assert 'mpijob_webhook_too_expensive_total{webhook="validate"} 1.0' in server.metrics()


def test_too_expensive_update_passes_only_if_the_spec_is_unchanged(server: Server) -> None:
    sent = body(slow(**{"metadata.finalizers": ["a"]}), old=slow())
    assert server.post("/validate-mpijob", sent)["allowed"]
    sent = body(slow(**{"Worker.template.spec.tolerations": [{"operator": "Exists"}]}), old=slow())
    assert not server.post("/validate-mpijob", sent)["allowed"]


def test_only_unskippable_injections_are_made_and_the_user_is_warned(server: Server) -> None:
    answer = server.post("/mutate-mpijob", body(slow()))
    assert answer["allowed"]
    assert b"activeDeadlineSeconds" in base64.b64decode(answer["patch"])
    assert "job-size: too expensive to judge, so nothing was injected but created-by, job-timeout" in answer["warnings"]


def test_nothing_is_injected_if_even_unskippable_injections_are_too_expensive(server: Server) -> None:
    answer = server.post("/mutate-mpijob", body(slow(**{"metadata.labels": {"slow": "yes"}})))
    assert (answer["allowed"], answer.get("patch")) == (True, None)
    assert answer["warnings"] == ["job-size: too expensive to judge, so nothing was injected"]


def test_too_expensive_policy_document_is_rejected(server: Server) -> None:
    labels = {"training.openshift.io/mpijob-policy": "true"}
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "p", "labels": labels},
        "data": {"policy.yaml": "slow"},
    }
    answer = server.post("/validate-policy", body(document))
    assert "takes too much processor time to read" in answer["status"]["message"]


def test_server_still_answers_after_many_expensive_reviews(server: Server) -> None:
    for _ in range(10):
        assert not server.post("/validate-mpijob", body(slow()))["allowed"]
        began = time.monotonic()
        assert server.post("/validate-mpijob", body(changed()))["allowed"]
        assert time.monotonic() - began < 20
