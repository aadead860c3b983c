"""With --disruption-budgets, every running job has a PodDisruptionBudget if the policy requires it.

`minAvailable` is the number of the job's pods. `maxUnavailable` cannot be used: Kubernetes does not know how many pods
an MPIJob has (https://kubernetes.io/docs/tasks/run-application/configure-pdb/). A job gets no budget before it runs.
When the job ends or is suspended, `minAvailable` becomes 0: otherwise drains would wait for its pods.
"""

from typing import Final

from webhook.client.objects import KubernetesObject
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPIJobRecord
from webhook.controllers.owned_objects import JOB_NAME, OPERATOR_NAME, OwnedKind, OwnedObjects, SeenObject
from webhook.injections.no_disruption import Settings
from webhook.parts.disruption_budgets import INJECTION, NAME
from webhook.policy.document import PolicyDocument

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


class DisruptionBudgets(OwnedObjects):
    """The controller."""

    name = NAME
    kind = KIND

    async def _reconcile(self, key: ByNamespace, job: MPIJobRecord, document: PolicyDocument) -> float | None:
        """Check one job. The cached job may already be deleted: the garbage collector then deletes the new budget."""
        stored = self._seen(key)
        exists = isinstance(stored, SeenObject) and stored.owner == job.uid
        pods = 0 if job.suspended else sum(each.count for each in job.pods)
        settings = document.settings_of_injection(INJECTION)
        if not (isinstance(settings, Settings) and settings.budget):
            pods = 0
        body = budget(job, pods)
        wanted = KIND.record(body)
        if stored == wanted or not (pods or exists):
            return None
        if exists and (wait := self._rewritten.wait(key, self._clock())):
            return wait
        later = await self._write(key, body, wanted, stored)
        if exists and later is None:
            self._rewritten.note(key, self._clock())
        return later
