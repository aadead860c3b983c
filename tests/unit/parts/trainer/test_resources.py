"""The cached records of runtimes and TrainJobs."""

import json
from typing import Any

import msgspec
import pytest

from tests.support.logs import Log
from tests.support.trainer import NODE, pods, record, runtime
from webhook.client import live_view
from webhook.client.store import Store
from webhook.client.wire import Metadata
from webhook.cluster.resources import watched_resources
from webhook.cluster.view import UNKNOWN
from webhook.parts.trainer import kinds
from webhook.parts.trainer.limits import MAX_NAMESPACE_RUNTIMES_BYTES, MAX_RUNTIME_BYTES, MAX_RUNTIMES_BYTES
from webhook.parts.trainer.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    RUNTIMES,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    WATCHED,
    TrainJobRecord,
)

FAILED = {"type": "Failed", "status": "True"}


@pytest.mark.parametrize(
    ("more", "over"),
    [
        ({}, False),
        ({"status": {"conditions": None}}, False),
        ({"status": {"conditions": [{**FAILED, "status": "False"}]}}, False),
        ({"status": {"conditions": [{"type": "Suspended", "status": "False"}, FAILED]}}, True),
        ({"status": {"conditions": [{**FAILED, "type": "Complete"}]}}, True),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, True),
    ],
)
def test_train_job_record_says_whether_the_job_has_ended_or_is_being_deleted(more: Any, over: bool) -> None:
    metadata = {"namespace": "team", "name": "a", "uid": "1", **more.get("metadata", {})}

    cached = TRAIN_JOBS.project(msgspec.json.encode({"spec": {}, **more, "metadata": metadata}))

    assert cached == TrainJobRecord("team", "a", "1", over)


def test_record_of_an_mpi_runtime_has_the_fields_that_rules_read():
    manifest = runtime(kinds.RUNTIME)
    template = manifest["spec"]["template"]
    template["metadata"] = {"annotations": {"a": "b"}}
    used = {"mlPolicy": manifest["spec"]["mlPolicy"], "template": template}
    manifest["spec"]["podGroupPolicy"] = {"coscheduling": {}}

    cached = record(manifest)

    assert (cached.namespace, cached.name) == ("team", "deepspeed")
    assert json.loads(cached.spec) == used


@pytest.mark.parametrize("spec", [{}, {"mlPolicy": None}, {"mlPolicy": {"torch": {}}}, {"mlPolicy": {"mpi": None}}])
def test_record_of_a_runtime_without_mpi_is_empty(spec):
    assert record({**runtime(), "spec": spec}).spec == b""


def test_runtime_that_cannot_be_decoded_is_rejected():
    with pytest.raises(msgspec.ValidationError):
        CLUSTER_TRAINING_RUNTIMES.project(b'{"metadata": {"name": "x"}, "spec": {"mlPolicy": 7}}')


def test_runtimes_are_not_watched_without_the_option():
    assert not {*WATCHED} & {*watched_resources()}


class Cache:
    def __init__(self, resource):
        self.log = Log()
        (kind,) = live_view.kinds(resource, {})
        self.store = Store(kind, log=self.log)

    def put(self, namespace, name, size):
        manifest = runtime(kinds.RUNTIME)
        manifest["metadata"] = {"namespace": namespace, "name": name}
        pods(manifest, NODE)["containers"][0]["args"] = ["x" * size]
        metadata = Metadata(namespace=namespace, name=name, resource_version="1")
        self.store.put(metadata, msgspec.Raw(json.dumps(manifest).encode()))

    def remove(self, namespace, name):
        self.store.remove(Metadata(namespace=namespace, name=name, resource_version="1"))

    @property
    def bytes(self):
        return sum(len(cached.spec) for cached in self.store.records.values())


@pytest.mark.parametrize("resource", RUNTIMES, ids=lambda resource: resource.plural)
def test_too_large_runtime_is_unknown_and_not_cached(resource):
    cache = Cache(resource)

    for number in range(30):
        cache.put("team", f"runtime-{number}", 1_400_000)

    assert cache.bytes == 0
    key = ("team", "runtime-0") if resource is TRAINING_RUNTIMES else "runtime-0"
    assert cache.store.get(key) is UNKNOWN
    skipped = cache.log.events("object skipped")
    assert [(event["kind"], event["name"], event["error"]) for event in skipped][:1] == [
        (resource.plural, "runtime-0", "Full")
    ]
    assert len(skipped) == 30


def test_total_size_of_runtimes_in_a_namespace_is_limited():
    cache = Cache(TRAINING_RUNTIMES)
    for number in range(300):
        cache.put("team", f"runtime-{number}", 200_000)
    cache.put("other", "runtime", 200_000)

    assert MAX_NAMESPACE_RUNTIMES_BYTES - MAX_RUNTIME_BYTES < cache.bytes - 200_000 <= MAX_NAMESPACE_RUNTIMES_BYTES
    assert cache.store.get(("team", "runtime-299")) is UNKNOWN
    assert cache.store.get(("other", "runtime")) is not UNKNOWN


@pytest.mark.parametrize("resource", RUNTIMES, ids=lambda resource: resource.plural)
def test_total_size_of_runtimes_is_limited(resource):
    cache = Cache(resource)

    for number in range(200):
        cache.put(f"team-{number}", f"runtime-{number}", 200_000)

    assert MAX_RUNTIMES_BYTES - MAX_RUNTIME_BYTES < cache.bytes <= MAX_RUNTIMES_BYTES


def test_runtime_fits_into_the_cache_after_another_runtime_is_removed_or_becomes_too_large():
    cache = Cache(TRAINING_RUNTIMES)
    for number in range(6):
        cache.put("team", f"runtime-{number}", 200_000)
    last = ("team", "runtime-5")
    assert cache.store.get(last) is UNKNOWN

    cache.put("team", "runtime-4", 200_001)
    assert cache.store.get(("team", "runtime-4")) is not UNKNOWN
    cache.remove("team", "runtime-4")
    cache.put(*last, 200_000)

    assert cache.store.get(last) is not UNKNOWN
    cache.put(*last, 300_000)
    assert cache.store.get(last) is UNKNOWN
    cache.put("team", "runtime-4", 200_000)
    assert cache.store.get(("team", "runtime-4")) is not UNKNOWN
