"""With --disruption-budgets, every running job has a PodDisruptionBudget if the policy requires it.

`minAvailable` is the number of the job's pods. `maxUnavailable` cannot be used: Kubernetes does not know how many pods
an MPIJob has (https://kubernetes.io/docs/tasks/run-application/configure-pdb/). A job gets no budget before it runs.
When the job ends or is suspended, `minAvailable` becomes 0: otherwise drains would wait for its pods.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from webhook.client.live_view import LiveView
from webhook.client.objects import KubernetesObject
from webhook.client.watch import Watch
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import Answer
from webhook.controllers.owned_objects import (
    JOB_NAME,
    LATE_PAUSE,
    OPERATOR_NAME,
    PREFIX,
    RESYNC,
    UNKNOWN_PAUSE,
    OwnedKind,
    SeenObject,
    Writer,
)
from webhook.controllers.reconciler import PacedClient, Reconciler, Restraint
from webhook.injections.no_disruption import Settings
from webhook.parts.disruption_budgets import INJECTION, NAME
from webhook.policy.in_force import PolicySet

KIND: Final = OwnedKind(
    "policy/v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    "training.openshift.io/disruption-budget",
    foreign="drains may evict the job's pods",
)
BUDGETS: Final = KIND.watched()


def budget(job: MPIJobRecord, pods: int) -> KubernetesObject:
    """The budget that protects this number of the job's pods."""
    selector = {"matchLabels": {OPERATOR_NAME: "mpi-operator", JOB_NAME: job.name}}
    return KIND.of_job((job.namespace, job.name), job.uid, "true", {"minAvailable": pods, "selector": selector})


@dataclass(eq=False)
class DisruptionBudgets:
    """The controller. Every replica maintains all budgets; `watch` has the budgets of all replicas."""

    api: PacedClient
    view: LiveView
    watch: Watch[ByNamespace, SeenObject]
    policies: Callable[[], PolicySet]
    log: Any

    def __post_init__(self) -> None:
        self.reconciler: Reconciler[ByNamespace] = Reconciler(NAME, self._look, log=self.log)
        self._clock = asyncio.get_running_loop().time
        self._writer = Writer(self.api, KIND, self.log)
        self._changed: Restraint[ByNamespace] = Restraint()
        self.view.on_change(MPI_JOBS, lambda key, *_: self.reconciler.add(key))
        self.view.on_change(NAMESPACES, lambda name, *_: self._look_at(self.view.within(MPI_JOBS, name)))
        self.watch.store.on_change(lambda key, *_: self.reconciler.add((key[0], key[1].removeprefix(PREFIX))))

    async def run(self) -> None:
        """Maintain all budgets until cancelled."""
        await self.view.settled()
        await self.watch.settled()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reconciler.run())
            while True:
                self.resync()
                await asyncio.sleep(RESYNC)

    def resync(self) -> None:
        self._look_at(self.view.all(MPI_JOBS))

    def _look_at(self, jobs: Iterable[ByNamespace] | Answer) -> None:
        for key in () if isinstance(jobs, Answer) else jobs:
            self.reconciler.add(key)

    async def _look(self, key: ByNamespace) -> float | None:
        """Check one job. The cached job may already be deleted: the garbage collector then deletes the new budget."""
        job, namespace = self.view.get(MPI_JOBS, key), self.view.get(NAMESPACES, key[0])
        if job is Answer.ABSENT:
            self._writer.forget(key)
            self._changed.forget(key)
            return None
        if isinstance(job, Answer) or isinstance(namespace, Answer):
            return LATE_PAUSE if namespace is Answer.ABSENT else UNKNOWN_PAUSE
        stored = self.watch.get((key[0], PREFIX + key[1]))
        exists = isinstance(stored, SeenObject) and stored.owner == job.uid
        pods = 0 if job.suspended else sum(each.count for each in job.pods)
        settings = self.policies().for_namespace(namespace).document.settings_of_injection(INJECTION)
        if not (isinstance(settings, Settings) and settings.budget):
            pods = 0
        body = budget(job, pods)
        wanted = KIND.record(body)
        if stored == wanted or not (pods or exists):
            return None
        if exists and (wait := self._changed.wait(key, self._clock())):
            return wait
        later = await self._writer.write(key, body, wanted, stored)
        if exists and later is None:
            self._changed.note(key, self._clock())
        return later
