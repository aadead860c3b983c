import json
from typing import Any

import pytest
from hypothesis import given

from tests.support.any_job import mangled_jobs
from tests.support.jobs import GOOD, changed
from webhook.api import document, mpijob

STORED = {
    "uid": "0b1c",
    "generation": 2,
    "resourceVersion": "7",
    "creationTimestamp": "2026-03-02T09:30:00Z",
    "finalizers": ["example.com/wait"],
}


def parts(job: mpijob.MPIJob) -> tuple[object, ...]:
    return job.api_version, job.kind, job.metadata, job.spec, bytes(job.raw_status)


def outcome(decode: Any, data: bytes) -> Any:
    try:
        job, whole = decode(data)
    except (ValueError, RecursionError) as error:
        return type(error), str(error)
    return parts(job), whole


def one_after_the_other(data: bytes) -> Any:
    return mpijob.decode(data), document.object_of(data)


@given(mangled_jobs())
def test_one_decode_has_the_outcome_of_two(job: object) -> None:
    data = json.dumps(job).encode()
    assert outcome(document.decode, data) == outcome(one_after_the_other, data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"metadata": null}',
        b'{"metadata": {"labels": {"a": 1}}}',
        b'{"metadata": {"unknown": 1}, "other": [1]}',
        b'{"metadata": {"managedFields": 1}}',
        b'{"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4.0}}}}',
        b'{"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": true}}}}',
        b'{"spec": {"slotsPerWorker": 2147483648}}',
        b'{"spec": {"foo": 99999999999999999999, "bar": 1e999}}',
        b'{"spec": {"foo": "\xff"}}',
        b'{"spec": {"runPolicy": {"schedulingPolicy": {"minResources": {"cpu": 1.5, "memory": null}}}}}',
        b'{"status": {"conditions": [{"type": "Running", "status": "True"}]}}',
        b'{"status": null}',
        b'{"status": {"conditions": 1}}',
        b"[" * 100_000,
        json.dumps({"spec": {"a": 1}}).encode() + b"x",
    ],
)
def test_whatever_is_sent_one_decode_has_the_outcome_of_two(data: bytes) -> None:
    assert outcome(document.decode, data) == outcome(one_after_the_other, data)


def test_the_object_is_whole_but_for_its_managed_fields() -> None:
    stored: Any = {**GOOD, "metadata": {**GOOD["metadata"], **STORED}, "status": {"startTime": None}}
    sent = {**stored, "metadata": {**stored["metadata"], "managedFields": [{"manager": "kubectl"}]}}
    job, whole = document.decode(json.dumps(sent).encode())
    assert whole == stored
    assert bytes(job.raw_status) == b'{"startTime": null}'


def test_what_is_written_into_the_object_leaves_the_job_as_it_was() -> None:
    job, whole = document.decode(json.dumps(changed({"metadata.labels": {"team": "a"}})).encode())
    whole["metadata"]["labels"]["team"] = "b"
    worker = whole["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"].append({"name": "other"})
    worker["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 0
    assert parts(job) == parts(mpijob.decode(json.dumps(changed({"metadata.labels": {"team": "a"}})).encode()))
