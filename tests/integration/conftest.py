"""A real control plane that all integration tests share. Each test has a separate namespace."""

from collections.abc import Generator, Iterator

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.build import ensure_built
from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import gpu_nodes
from tests.support.installation import service


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the cluster, so that `-m "not cluster"` deselects them."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the control plane if it is not cached. Here, no test's timeout applies, and pytest shows the progress."""
    items = [item for item in session.items if item.get_closest_marker("cluster")]
    if items and not session.config.option.collectonly:
        with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            assets()
            for recipe in {recipe for item in items for mark in item.iter_markers("built") for recipe in mark.args}:
                ensure_built(recipe)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the last lines of each program's log to the report of a failed test."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Cluster):
        report.sections += [(f"log of {name}", program.tail()) for name, program in cluster.programs.items()]
    return report


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """etcd, kube-apiserver, kube-controller-manager and the MPIJob CRD. The logs are in pytest's temporary folder."""
    with Cluster(log_dir=tmp_path_factory.mktemp("cluster-logs")) as running:
        yield running


@pytest.fixture(scope="session")
def operator_cluster(cluster: Cluster) -> Cluster:
    """`cluster` with mpi-operator, kube-scheduler and eight simulated GPU nodes, so that jobs run."""
    cluster.start_scheduler()
    cluster.start_kwok(gpu_nodes(8))
    cluster.start_operator()
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """The name of a new namespace."""
    name = cluster.create_namespace()
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def webhook(cluster: Cluster) -> Iterator[None]:
    """This project's service, registered with the cluster for one test module."""
    with service.running(cluster):
        yield
