"""Lists and watches with a real API server: events, pages, and a resource version that a restart makes invalid."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.controlplane.cluster import Cluster
from tests.support.live_views import connected, until
from webhook.client.connection import Connection
from webhook.client.live_view import LiveView, kinds
from webhook.client.store import Kind, by_namespace
from webhook.client.watch import Watch
from webhook.client.wire import FaultReason
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import ABSENT, UNKNOWN, Answer
from webhook.server.background import at_work
from webhook.server.log import make_log

# API servers are killed here, and asyncio does not close a connection whose peer dies in the TLS handshake.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
NAMESPACE_KIND = kinds(NAMESPACES, {})[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that these tests may break."""
    with Cluster(log_dir=tmp_path_factory.mktemp("watched-cluster-logs")) as running:
        yield running


def quick(kind: Kind[Any, Any], connection: Connection, log: Any) -> Watch[Any, Any]:
    """A watch with a tenth of the usual delays."""
    return Watch(kind, connection, log=log, sleep=lambda seconds: asyncio.sleep(seconds / 10))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Any]:
    with (tmp_path / "log").open("wb") as stream:
        yield make_log(stream)


def keep_name(kind: str, path: str, **options: Any) -> Kind[Any, str]:
    return Kind(kind, path, project=lambda data: msgspec.json.decode(data)["metadata"]["name"], **options)


async def test_created_relabelled_and_deleted_namespaces_are_seen(cluster: Cluster, log: Any) -> None:
    async with connected(cluster.kubeconfig) as connection:
        view = LiveView(connection, log=log)
        assert view.get(NAMESPACES, "default") is UNKNOWN
        async with at_work(view.run):
            await view.settled()
            assert view.get(NAMESPACES, "default") == Namespace("default", {"kubernetes.io/metadata.name": "default"})
            assert view.get(NAMESPACES, "watched") is ABSENT
            cluster.kubectl("create", "namespace", "watched")
            await until(lambda: view.get(NAMESPACES, "watched") is not ABSENT)
            cluster.kubectl("label", "namespace", "watched", "tier=premium")
            await until(lambda: label(view.get(NAMESPACES, "watched")) == "premium")
            cluster.kubectl("label", "namespace", "watched", "tier=base", "--overwrite")
            await until(lambda: label(view.get(NAMESPACES, "watched")) == "base")
            cluster.kubectl("delete", "namespace", "watched")
            await until(lambda: view.get(NAMESPACES, "watched") is ABSENT)
            watch = next(each for each in view.watches if each.kind.name == "namespaces")
            assert watch.requests == 2
            assert not watch.restarts


async def test_long_list_is_read_in_pages(cluster: Cluster, namespace: str, log: Any) -> None:
    async with connected(cluster.kubeconfig) as connection:
        async with asyncio.TaskGroup() as group:
            for number in range(620):
                group.create_task(create_config_map(connection, namespace, f"page-{number}"))
        kind = keep_name(
            "configmaps",
            f"/api/v1/namespaces/{namespace}/configmaps",
            key=by_namespace,
            label_selector="of=test,page notin (x)",
            field_selector="metadata.name!=page-5",
            page=100,
        )
        watch = quick(kind, connection, log)
        async with at_work(watch.run):
            await watch.settled()
            assert watch.requests in {7, 8}  # the eighth request is the watch
            assert len(watch.store.records) == 619
            assert watch.get((namespace, "page-619")) == "page-619"
            assert watch.get((namespace, "page-5")) is ABSENT
            cluster.kubectl("label", "configmap", "page-3", "of-", "-n", namespace)
            await until(lambda: watch.get((namespace, "page-3")) is ABSENT)
            assert len(watch.store.records) == 618


async def test_expired_resource_version_causes_a_new_list(cluster: Cluster, log: Any) -> None:
    async with connected(cluster.kubeconfig) as connection:
        watch = quick(NAMESPACE_KIND, connection, log)
        async with at_work(watch.run):
            await watch.settled()
            await until(lambda: watch.requests == 2)
        for number in range(3):
            cluster.kubectl("create", "namespace", f"unseen-{number}")
        cluster.stop_apiserver()
        cluster.start_apiserver()  # the new API server has no events from before the restart
        async with at_work(watch.run):
            await until(lambda: isinstance(watch.get("unseen-2"), Namespace))
        assert watch.restarts[FaultReason.EXPIRED] == 1


def label(answer: Namespace | Answer) -> str | None:
    return answer.labels.get("tier") if isinstance(answer, Namespace) else None


async def create_config_map(connection: Connection, namespace: str, name: str) -> None:
    body = {"metadata": {"name": name, "labels": {"of": "test"}}, "data": {"name": name}}
    api = connection._api
    prepared = await api.param_serialize(
        method="POST",
        resource_path=f"/api/v1/namespaces/{namespace}/configmaps",
        body=body,
        auth_settings=["BearerToken"],
    )
    response = await api.call_api(*prepared)
    await response.read()
    assert response.status == 201
