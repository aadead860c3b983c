"""What is known of specs and templates takes hardly more memory than is counted, however hostile they are."""

import gc
import tracemalloc
from collections.abc import Iterator
from datetime import date
from typing import Any, Final

import pytest

from tests.support.hostile import SHAPES, Job
from tests.support.jobs import changed, request
from webhook.admission import pipelines
from webhook.api import written
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import load_policy

POLICY: Final = load_policy(None)
# Real bytes for each that is counted; with the 12 MiB that are counted it is the most in all.
FACTOR: Final = 1.5
# What a few jobs take besides, whatever they are.
SOME: Final = 40_000
TEAM: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
VIEW: Final = Snapshot([TEAM])


@pytest.fixture(scope="module", autouse=True)
def _traced() -> Iterator[None]:
    taken(changed(), changed({"spec.slotsPerWorker": 9}))  # what is made once
    tracemalloc.start()
    yield
    tracemalloc.stop()


def taken(*jobs: Job, namespace: str = "team") -> tuple[int, int]:
    """Bytes that are kept of these jobs until all that is known is forgotten, and how many are counted."""
    written.known.clear()
    for job in jobs:
        job["metadata"] |= {"namespace": namespace, "uid": ""}
        for _ in range(3):
            pipelines.validate(request(job), policy=POLICY, view=VIEW, today=date.min)
        pipelines.mutate(request(job), policy=POLICY, view=VIEW)
    gc.collect()
    counted, before = written.known.size, tracemalloc.get_traced_memory()[0]
    written.known.clear()
    gc.collect()
    return before - tracemalloc.get_traced_memory()[0], counted


@pytest.mark.parametrize("shape", SHAPES)
def test_of_templates(shape: str) -> None:
    real, counted = taken(SHAPES[shape](10_000))
    assert real < FACTOR * counted + SOME


LONG: Final = "x" * 100_000


@pytest.mark.parametrize(
    ("metadata", "namespace"),
    [
        ({"annotations": {"note": LONG}}, "team"),
        ({"annotations": {"note": "\N{ROCKET}" + LONG}}, "team"),
        ({"labels": {"note": LONG}}, "team"),
        ({"name": LONG}, "team"),
        ({"generateName": LONG}, "team"),
        ({}, LONG),
    ],
    ids=["annotation", "wide annotation", "label", "name", "generateName", "namespace"],
)
def test_of_specs(metadata: dict[str, Any], namespace: str) -> None:
    """With the same two templates, and what is found out about jobs of the spec."""
    jobs = [changed({"spec.slotsPerWorker": number + 1}) for number in range(4)]
    for job in jobs:
        job["metadata"] |= metadata
    real, counted = taken(*jobs, namespace=namespace)
    assert counted > 0
    assert real < FACTOR * counted + SOME
