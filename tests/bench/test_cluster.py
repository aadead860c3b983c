"""The simulated API server of the benchmarks has objects of every watched kind."""

from typing import Any

import pytest

from tests.bench.cluster import Size, objects
from webhook.cluster.resources import watched_resources


@pytest.mark.parametrize("resource", watched_resources(), ids=lambda resource: resource.name)
def test_each_watched_resource_has_readable_objects(resource: Any) -> None:
    for size in (Size.of(10), Size.of(100), Size(100, 1)):
        count, make = objects(size)[resource.name]
        assert count > 0
        read = [resource.project(make(index)) for index in range(count)]
        assert None not in read
        keys = {(getattr(each, "namespace", ""), each.name) for each in read if hasattr(each, "name")}
        assert len(keys) in {0, count}, "each object has a different name"
