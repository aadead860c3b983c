"""The service's PolicyWatch, with an API server and a watch of ConfigMaps in memory."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.support.logs import Log
from webhook import __version__
from webhook.client.calls import ApiError, ClusterError
from webhook.client.store import Store
from webhook.cluster.contents import Contents
from webhook.policy.in_force import PolicySet
from webhook.policy.store import Loaded, PolicySource
from webhook.server.policy_watch import PolicyWatch, policies


def copy(version: str = __version__, **texts: str) -> dict[str, str]:
    """The ConfigMap data in which this version of the service stores the last good policies."""
    return {f"_{version}": json.dumps(texts, separators=(",", ":"))}


class Api:
    """Stores a ConfigMap and Events. `faults` are raised first, one for each request."""

    def __init__(self, *faults: Exception, remembered: dict[str, str] | None = None) -> None:
        self.faults = list(faults)
        self.remembered = remembered
        self.allowed = [True]
        self.version: dict[str, Any] | None = None
        self.events: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str]] = []

    async def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        if path == "/version":
            if self.version is None:
                raise ClusterError("no answer")
            return self.version
        self.calls.append((method, path.rsplit("/", 1)[-1]))
        if self.faults:
            raise self.faults.pop(0)
        if path.endswith("/selfsubjectaccessreviews"):
            assert body is not None
            assert body["spec"]["resourceAttributes"]["verb"] == "list"
            return {"status": {"allowed": self.allowed.pop(0) if len(self.allowed) > 1 else self.allowed[0]}}
        if path.endswith("/events"):
            assert body is not None
            if body["metadata"]["name"] in self.events:
                raise ApiError(409, "exists")
            self.events[body["metadata"]["name"]] = body
            return body
        if method == "GET":
            if self.remembered is None:
                raise ApiError(404, "not found")
            return {"metadata": {"resourceVersion": "1"}, "data": self.remembered}
        assert body is not None
        self.remembered = body["data"]
        return body


class FakeWatch:
    synced = known = True
    reason = ""
    concerns: Any = None
    policies: Any = None

    def __init__(self) -> None:
        self.store: Store[str, PolicySource] = Store(policies("ns"), log=Log())

    async def settled(self) -> None:
        pass

    def now(self, **texts: str | None) -> None:
        """Replace all ConfigMaps by these."""
        records = {name: PolicySource(name, f"uid-{name}", str(hash(text)), text) for name, text in texts.items()}
        self.store.replace(Contents(records=records))


@asynccontextmanager
async def following(api: Api, **options: Any) -> AsyncIterator[tuple[FakeWatch, list[tuple[PolicySet, Loaded]], Log]]:
    watch, log = FakeWatch(), Log()
    applied: list[tuple[PolicySet, Loaded]] = []
    made: Any = PolicyWatch
    policy_watch = made(
        watch=watch, api=api, namespace="ns", apply=lambda *outcome: applied.append(outcome), log=log, **options
    )
    watch.concerns, watch.policies = policy_watch.concerns, policy_watch
    task = asyncio.create_task(policy_watch.run())
    yield watch, applied, log
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
