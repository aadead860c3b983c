"""Autoscalers do not evict a job's pods.

A job fails if it loses a pod: "ORTE has lost communication with a remote daemon". Karpenter and the cluster autoscaler
evict pods to remove nodes and save cost, except pods with the annotations `karpenter.sh/do-not-disrupt: "true"` and
`cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`. With `enabled`, launcher and workers get both annotations.
The annotations have no effect on preemption, `kubectl drain` or a lost node.

With `budget`, and `serve --disruption-budgets`, each running job gets a PodDisruptionBudget `mpijob-<job>`. The API
server then rejects the eviction of the job's pods, and `kubectl drain` waits for the end of the job. The budget has no
effect on preemption, a lost node, `kubectl delete pod` or `kubectl drain --disable-eviction`.

Both settings are off by default, because they let a job that hangs keep its nodes until its time limit.
"""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from pydantic import Field

from webhook.api.mpijob import MPIJob
from webhook.injections import injection
from webhook.kit.context import Context
from webhook.kit.forms import equal, in_templates
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings

ANNOTATIONS: Final = MappingProxyType(
    {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
)


class Settings(InjectionSettings):
    """Whether annotations and budget are on."""

    enabled: bool = Field(False, description="Whether anything is injected.")
    budget: bool = Field(False, description="Whether each job gets a PodDisruptionBudget while it runs.")


FORMS: Final = tuple(
    form
    for key, value in ANNOTATIONS.items()
    for form in in_templates("metadata", "annotations", key, holds=equal(value))
)


@injection("no-disruption", Settings, since="0.1", importance=Importance.MINOR, forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    added = [
        role
        for role, _, replica in job.replicas
        if replica.template.containers
        and patch.add_entries((*template_path(role), "metadata", "annotations"), ANNOTATIONS)
    ]
    if added:
        yield f"autoscalers leave the nodes of {' and '.join(added)} alone"
