"""Maintains the PodDisruptionBudgets of running jobs.

While a job runs, `minAvailable` is the number of its pods. Afterwards it is 0, so that drains do not wait. Kubernetes
cannot use `maxUnavailable` here, because it does not know how many pods an MPIJob has
(https://kubernetes.io/docs/tasks/run-application/configure-pdb/).
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
    selector = {"matchLabels": {OPERATOR_NAME: "mpi-operator", JOB_NAME: job.name}}
    return KIND.of_job((job.namespace, job.name), job.uid, "true", {"minAvailable": pods, "selector": selector})


class DisruptionBudgets(OwnedObjects):
    """The controller."""

    name = NAME
    kind = KIND

    async def _reconcile(self, key: ByNamespace, job: MPIJobRecord, document: PolicyDocument) -> float | None:
        """The cached job may already be deleted. The garbage collector then deletes the new budget."""
        stored = self._seen(key)
        exists = isinstance(stored, SeenObject) and stored.owner == job.uid
        settings = document.settings_of_injection(INJECTION)
        is_protected = isinstance(settings, Settings) and settings.budget and not job.suspended
        pods = sum(role.count for role in job.pods) if is_protected else 0
        body = budget(job, pods)
        expected = KIND.record(body)
        if stored == expected or not (pods or exists):
            return None
        if exists and (wait := self._rewritten.wait(key, self._clock())):
            return wait
        later = await self._write(key, body, expected, stored)
        if exists and later is None:
            self._rewritten.note(key, self._clock())
        return later
