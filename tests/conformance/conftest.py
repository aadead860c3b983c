"""The cluster of a module of conformance tests."""

from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server without controllers, with the APISERVER_FLAGS of the module."""
    flags = getattr(request.module, "APISERVER_FLAGS", ())
    with Cluster(controller_manager=False, apiserver_flags=flags, log_dir=tmp_path_factory.mktemp("logs")) as running:
        yield running
