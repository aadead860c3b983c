"""The cluster view of a running service: what the watches have seen."""

import asyncio
from collections.abc import Sequence
from typing import Any

from webhook.cluster.connection import Connection
from webhook.cluster.records import CLAIMS, NAMESPACES, PRIORITY_CLASSES, WORKLOAD_PRIORITY_CLASSES
from webhook.cluster.view import (
    UNKNOWN,
    Answer,
    Namespace,
    PersistentVolumeClaim,
    PriorityClass,
    WorkloadPriorityClass,
)
from webhook.cluster.watch import Watch


class LiveView:
    """A ClusterView, up to date while `run` runs; `watches` are for metrics and readiness."""

    def __init__(self, connection: Connection, *, log: Any) -> None:
        self._namespaces = Watch(NAMESPACES, connection, log=log)
        self._priority_classes = Watch(PRIORITY_CLASSES, connection, log=log)
        self._workload_priority_classes = [Watch(kind, connection, log=log) for kind in WORKLOAD_PRIORITY_CLASSES]
        self._claims = Watch(CLAIMS, connection, log=log)
        self.watches: tuple[Watch[Any, Any], ...] = (
            self._namespaces,
            self._priority_classes,
            *self._workload_priority_classes,
            self._claims,
        )

    def namespaces(self) -> Sequence[Namespace] | Answer:
        """Every namespace there is."""
        return list(self._namespaces.store.records.values()) if self._namespaces.known else UNKNOWN

    def namespace(self, name: str) -> Namespace | Answer:
        """The namespace called `name`."""
        return self._namespaces.get(name)

    def mpijob(self, namespace: str, name: str) -> Answer:
        """UNKNOWN: jobs are not watched."""
        return UNKNOWN

    def priority_class(self, name: str) -> PriorityClass | Answer:
        """The PriorityClass called `name`."""
        return self._priority_classes.get(name)

    def workload_priority_class(self, name: str) -> WorkloadPriorityClass | Answer:
        """Kueue's WorkloadPriorityClass called `name`, in the newest version of its API that the cluster serves."""
        return next((watch.get(name) for watch in self._workload_priority_classes if watch.known), UNKNOWN)

    def persistent_volume_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | Answer:
        """The claim called `name` in `namespace`."""
        return self._claims.get((namespace, name))

    async def run(self) -> None:
        """Keep every kind up to date, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watch in self.watches:
                group.create_task(watch.run(), name=f"watch {watch.kind.name}")

    async def settled(self) -> None:
        """Return once every kind is either synced or known to be out of reach."""
        for watch in self.watches:
            await watch.settled()
