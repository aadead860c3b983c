"""The real Kueue's decisions about MPIJobs."""

import asyncio
from typing import Any, NamedTuple

from tests.support.api_client import Client
from webhook.api.kueue import API_VERSIONS

# A rejection is final after this number of further reads, because Kueue may return to flavors that it skipped.
AGAIN = 2


class Verdict(NamedTuple):
    admitted: bool
    message: str


class Workloads:
    """Kueue's verdicts on Workloads, by namespace. One request reads the Workloads of all namespaces."""

    def __init__(self, api: Client) -> None:
        self._api = api
        self._read = asyncio.Condition()
        self.names: set[str] = set()
        self.verdicts: dict[str, Verdict] = {}

    async def run(self) -> None:
        while True:
            _, reply, _ = await self._api.send("GET", f"/apis/{API_VERSIONS[0]}/workloads", None)
            self.names = {item["metadata"]["namespace"] for item in reply["items"]}
            decided = {item["metadata"]["namespace"]: _verdict(item) for item in reply["items"]}
            self.verdicts = {namespace: verdict for namespace, verdict in decided.items() if verdict is not None}
            async with self._read:
                self._read.notify_all()
            await asyncio.sleep(0.25)

    async def next(self) -> None:
        """Wait until all Workloads have been read once more."""
        async with self._read:
            await self._read.wait()

    async def decide(self, job: dict[str, Any]) -> Verdict:
        namespace = job["metadata"]["namespace"]
        jobs = f"/apis/kubeflow.org/v2beta1/namespaces/{namespace}/mpijobs"
        status, reply, _ = await self._api.send("POST", jobs, job)
        assert status == 201, reply
        refused = 0
        while True:
            await self.next()
            if (verdict := self.verdicts.get(namespace)) is not None:
                refused += 1
                if verdict.admitted or refused > AGAIN:
                    break
        for path in (jobs, f"/apis/{API_VERSIONS[0]}/namespaces/{namespace}/workloads"):
            await self._api.send("DELETE", path, None)
        while namespace in self.names:
            await self.next()
        return verdict


def _verdict(workload: dict[str, Any]) -> Verdict | None:
    for condition in workload.get("status", {}).get("conditions", ()):
        if condition["type"] == "QuotaReserved":
            return Verdict(condition["status"] == "True", condition["message"])
    return None
