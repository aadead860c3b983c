"""A client that sends many parallel requests to a real API server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp

from tests.controlplane.cluster import Cluster
from tests.controlplane.credentials import client_of
from webhook.predict.pod_security import Version

T = TypeVar("T")

PARALLEL = 8

DRY_RUN = {"dryRun": "All"}


class Client:
    """Sends parallel requests to the API server over persistent connections."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def send(self, method: str, path: str, body: Any, **params: str) -> tuple[int, Any, list[str]]:
        """Returns (status, reply, warnings), with the warnings of Pod Security and ValidatingAdmissionPolicies."""
        async with self._session.request(method, path, json=body, params=params) as response:
            headers = response.headers.getall("Warning", [])
            warnings = [_unquoted(each) for each in headers if "PodSecurity" in each or "AdmissionPolicy" in each]
            return response.status, await response.json(), warnings

    async def make(self, path: str, body: Any) -> Any:
        status, reply, _ = await self.send("POST", path, body)
        assert status == 201, reply
        return reply

    async def make_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace with the ServiceAccount that pods need."""
        await self.make("/api/v1/namespaces", {"metadata": {"name": name, "labels": dict(labels or {})}})
        await self.make(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})

    async def until_forbidden(self, namespace: str) -> None:
        """Wait until the API server has seen the newest LimitRange or quota, and therefore rejects pods."""
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        async with asyncio.timeout(30):
            status = 0
            while status != 403:
                status, _, _ = await self.send("POST", f"/api/v1/namespaces/{namespace}/pods", pod, **DRY_RUN)

    async def newest(self) -> Version:
        """The version of the API server, or the version that it emulates."""
        _, reply, _ = await self.send("GET", "/version", None)
        return Version(int(reply.get("emulationMinor", reply["minor"])))


async def at_a_time(items: Iterable[T], work: Callable[[T], Awaitable[object]]) -> None:
    """Run `work` for all `items`, PARALLEL at a time."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(PARALLEL)))


def _unquoted(header: str) -> str:
    """The text in a Warning header, which is `299 - "text"`."""
    return header.removeprefix('299 - "').removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")


@asynccontextmanager
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    server, context = client_of(cluster.kubeconfig)
    connector = aiohttp.TCPConnector(ssl=context, limit=PARALLEL)
    async with aiohttp.ClientSession(server, connector=connector) as session:
        yield Client(session)
