"""The reviews that the benchmarks send: the right size, the right shape, and nothing that a rule would stop at."""

import json
from datetime import date
from typing import Any

import jsonpatch
import pytest

from tests.bench import body
from tests.bench.managed_fields import managed_fields
from webhook.admission import pipelines
from webhook.api import review
from webhook.cluster.view import NothingKnown

POLICY = pipelines.load_policy(None)


@pytest.mark.parametrize("number", [0, body.JOBS - 1])
def test_both_reviews_are_of_the_size_that_budgets_are_about(number: int) -> None:
    job = body.user_job(number)
    for review_body in (body.mutate_body(job), body.validate_body(job)):
        assert 10_500 < len(review_body) < 13_000


@pytest.mark.parametrize("number", [0, 1, body.JOBS - 1])
def test_the_job_is_admitted_with_nothing_to_say(number: int) -> None:
    request = review.decode(body.validate_body(body.user_job(number)))
    decision = pipelines.validate(request, policy=POLICY, view=NothingKnown(), today=date.min)
    assert (decision.skipped, decision.denied, decision.warned, decision.audited) == ("", [], [], [])


def test_the_mutating_review_has_what_every_injection_that_is_on_needs() -> None:
    request = review.decode(body.mutate_body(body.user_job(0)))
    decision = pipelines.mutate(request, policy=POLICY, view=NothingKnown())
    assert {"api-access", "clean-pod-policy", "istio", "job-timeout", "labels", "mpi-env"} <= set(decision.authors)


def test_the_validating_review_holds_the_mutated_object() -> None:
    job = body.user_job(3)
    before = json.loads(body.mutate_body(job))["request"]["object"]
    after = json.loads(body.validate_body(job))["request"]["object"]
    for key in ("creationTimestamp", "generation", "uid"):
        assert after["metadata"].pop(key)
    decision = pipelines.mutate(review.decode(body.mutate_body(job)), policy=POLICY, view=NothingKnown())
    assert after == jsonpatch.apply_patch(before, decision.patch)


def test_objects_have_sorted_keys_as_go_writes_them() -> None:
    for line in (body.mutate_body(body.user_job(0)), body.validate_body(body.user_job(0))):
        written = json.loads(line)["request"]["object"]
        assert json.dumps(written) == json.dumps(written, sort_keys=True)


def test_every_review_of_a_file_is_of_a_job_that_the_mark_makes_new() -> None:
    for bodies in (body.mutate_bodies(), body.validate_bodies()):
        requests = [review.decode(line) for line in bodies.splitlines()]
        assert len({r.namespace for r in requests}) == len({bytes(r.object) for r in requests}) == body.JOBS
        for request in requests:
            assert request.uid.endswith(body.MARK)
            job = json.loads(bytes(request.object))
            assert job["metadata"]["name"].endswith(body.MARK)
            for replica in job["spec"]["mpiReplicaSpecs"].values():
                assert body.MARK in replica["template"]["spec"]["containers"][0]["image"]


def test_reviews_are_the_same_in_every_run() -> None:
    assert body.validate_body(body.user_job(5)) == body.validate_body(body.user_job(5))


CONTAINER = {
    "name": "worker",
    "args": ["-v"],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    "ports": [{"containerPort": 22, "protocol": "TCP"}],
    "volumeMounts": [{"mountPath": "/data", "name": "data"}],
}
CONFIG = {"name": "c", "configMap": {"name": "settings"}}
OWNED: dict[str, Any] = {
    ".": {},
    "f:name": {},
    "f:args": {},
    "f:env": {
        ".": {},
        'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}},
        'k:{"name":"B"}': {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:fieldRef": {}}},
    },
    "f:ports": {
        ".": {},
        'k:{"containerPort":22,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}},
    },
    "f:volumeMounts": {".": {}, 'k:{"mountPath":"/data"}': {".": {}, "f:mountPath": {}, "f:name": {}}},
}


@pytest.mark.parametrize(
    ("spec", "owned"),
    [
        ({"slotsPerWorker": 2}, {"f:slotsPerWorker": {}}),
        ({"runPolicy": {"suspend": False}}, {"f:runPolicy": {".": {}, "f:suspend": {}}}),
        ({"runPolicy": {}}, {"f:runPolicy": {}}),
        ({"tolerations": [{"key": "gpu"}]}, {"f:tolerations": {}}),
        ({"imagePullSecrets": [{"name": "r"}]}, {"f:imagePullSecrets": {".": {}, 'k:{"name":"r"}': {}}}),
        ({"volumes": [CONFIG]}, {"f:volumes": {".": {}, 'k:{"name":"c"}': {".": {}, "f:name": {}, "f:configMap": {}}}}),
        ({"containers": [CONTAINER]}, {"f:containers": {".": {}, 'k:{"name":"worker"}': OWNED}}),
    ],
)
def test_managed_fields_of_the_spec(spec: dict[str, Any], owned: dict[str, Any]) -> None:
    job = {"metadata": {"name": "n", "uid": "u"}, "spec": spec}
    assert managed_fields(job) == {"f:metadata": {}, "f:spec": {".": {}, **owned}}


def test_managed_fields_of_the_metadata() -> None:
    job = {"metadata": {"name": "n", "namespace": "ns", "labels": {"a/b": "c"}}, "spec": {}}
    assert managed_fields(job)["f:metadata"] == {"f:labels": {".": {}, "f:a/b": {}}}
