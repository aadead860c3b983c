"""The bench of cluster sizes at a small size: every resource is there, everything can be read, no job is refused."""

import asyncio
import json
from typing import Any

import pytest

from tests.bench import cluster_size
from tests.bench.cluster_objects import Size, collections, objects, pages
from webhook.cluster.resources import watched_resources


@pytest.mark.parametrize("resource", watched_resources(), ids=lambda resource: resource.name)
def test_each_resource_has_objects_that_count(resource: Any) -> None:
    for size in (Size.of(10), Size.of(100), Size(100, 1)):
        count, make = objects(size)[resource.name]
        assert count > 0
        found = [resource.project(make(index)) for index in range(count)]
        assert None not in found
        keys = {(getattr(each, "namespace", ""), each.name) for each in found if hasattr(each, "name")}
        assert len(keys) in {0, count}, "each has a name of its own"


def page(start: int, limit: int) -> dict[str, object]:
    found: dict[str, object] = json.loads(b"".join(pages(5, lambda index: str(index).encode(), start, limit)))
    return found


def test_pages_come_to_an_end() -> None:
    assert page(0, 3) == {"kind": "List", "metadata": {"resourceVersion": "7", "continue": "3"}, "items": [0, 1, 2]}
    assert page(3, 3) == {"kind": "List", "metadata": {"resourceVersion": "7", "continue": ""}, "items": [3, 4]}


@pytest.mark.parametrize("size", [Size.of(20), Size(20, 1)], ids=str)
def test_jobs_are_judged_by_a_cluster_that_is_known(size: Size, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_size, "ROUNDS", 1)
    monkeypatch.setattr(cluster_size, "BODIES", 2)
    with cluster_size.serving(collections(size)) as url:
        found = asyncio.run(cluster_size.measure(url, size))
    assert found.objects >= 10 * size.namespaces
    assert (found.unreadable, found.denied, found.refused) == (0, 0, 2)
    assert min(found.validate_us, found.refuse_us) > 0
