"""A shape is the common part of several stored objects. It is cached once, as long as one of the objects is stored."""

import json
from typing import Any

from tests.support.jobs import changed
from tests.support.quota_objects import cluster, quota
from tests.support.rule_checks import defaulted
from webhook.cluster.contents import Group
from webhook.cluster.resources import mpijobs, nodes
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.nodes import NODES
from webhook.kit.context import Context
from webhook.predict.limits import MAX_CACHED_DEFAULTS
from webhook.predict.quota import assessment, promised_usage

UPDATES = 130
CONTAINERS = 6_000


def stored(memory: int, containers: int = 1, **metadata: Any) -> MPIJobRecord:
    """A job whose workers request this memory."""
    limits = {"limits": {"memory": f"{memory}Mi", "example.com/gpu": "1"}}
    many = [{"name": f"c{number}", "resources": limits} for number in range(containers)]
    job = changed(
        {"metadata": {"name": "large", "namespace": "team-a"} | metadata, "Worker.template.spec": {"containers": many}}
    )
    record = MPI_JOBS.project(json.dumps(job).encode())
    assert record is not None
    return record


def workers(record: MPIJobRecord) -> Any:
    return record.pods[1].shape


def test_similar_jobs_share_a_shape() -> None:
    first, second = stored(1), stored(1, name="other")
    assert workers(first) is workers(second)
    assert workers(first) is not workers(stored(2))


def test_shapes_of_an_updated_job_are_freed() -> None:
    key = ("team-a", "large")
    group = Group({key: stored(0, CONTAINERS)})
    before = len(mpijobs._SHARED)
    for number in range(1, UPDATES + 1):
        group.put(key, stored(number, CONTAINERS if number == UPDATES else 1))
    assert len(mpijobs._SHARED) == before
    group.drop(key)
    assert len(mpijobs._SHARED) < before


def test_charges_of_a_shape_are_freed_with_the_shape() -> None:
    before = len(promised_usage._CHARGES)
    for number in range(UPDATES):
        limits = {"limits": {"memory": f"{number}Mi"}}
        old = changed({"metadata.name": "large", "Worker.template.spec.containers.0.resources": limits})
        view = cluster(quota({"pods": 1}), old)
        assessed = assessment.assess(defaulted(changed()), Context(namespace="team-a", view=view))
        assert assessed is not None
        assert assessed.promised
        assert before < len(promised_usage._CHARGES) <= before + 4, "only the charges of the current job are cached"
        del assessed, view
    assert len(promised_usage._CHARGES) <= before + 2


def test_number_of_cached_charges_of_a_shape_is_limited() -> None:
    shape = workers(stored(1))
    for number in range(1_000):
        promised_usage._charges_of(shape, ((("cpu", number),), (), None, ""))  # type: ignore[arg-type]
        assert len(promised_usage._CHARGES[shape]) <= MAX_CACHED_DEFAULTS


def test_shape_of_nodes_is_freed_with_the_last_node() -> None:
    def node(name: str, pool: str) -> Any:
        metadata = {"name": name, "labels": {"pool": pool, "kubernetes.io/hostname": name}}
        return NODES.project(json.dumps({"metadata": metadata, "spec": {}, "status": {}}).encode())

    first, second = node("a", "x"), node("b", "x")
    assert first.shape is second.shape
    before = len(nodes._SHAPES)
    for number in range(UPDATES):
        first = node("a", str(number))
    assert len(nodes._SHAPES) == before + 1
    del first, second
    assert len(nodes._SHAPES) == before - 1
