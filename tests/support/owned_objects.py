"""A simulated cluster, with a controller that maintains objects owned by jobs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from tests.support.kept_objects import KeptObjects, settled
from tests.support.logs import Log
from tests.support.policies import layer
from webhook.client.store import Kind
from webhook.cluster.resource import Resource
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.controllers.reconciler import PacedClient
from webhook.policy.in_force import PolicySet
from webhook.server.background import at_work


class OwnerWorld:
    def __init__(
        self,
        cluster: KeptObjects,
        policy: str,
        controller: Any,
        kind: Kind[Any, Any],
        *reads: Resource[Any, Any],
        **options: Any,
    ) -> None:
        self.cluster = cluster
        self.policies = PolicySet([layer("p", policy)])
        self.controller = controller(
            api=PacedClient(cluster, rate=1e6, burst=10**6),  # practically unlimited
            view=cluster.view([MPI_JOBS, NAMESPACES, *reads]),
            watch=cluster.follow(kind),
            policies=lambda: self.policies,
            log=Log(),
            **options,
        )

    def set_policy(self, policy: str) -> None:
        self.policies = PolicySet([layer("p", policy)])
        self.controller.resync()

    async def settled(self) -> None:
        await settled(self.controller.reconciler)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        async with at_work(self.controller.run):
            await self.settled()
            yield self

    @property
    def events(self) -> list[str]:
        """The reasons of the Events in the cluster."""
        return [each["reason"] for each in self.cluster.named("events").values()]
