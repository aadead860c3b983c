"""The queue that a job names takes jobs from its namespace.

Kueue suspends a job with the label `kueue.x-k8s.io/queue-name` and looks at nothing else: a queue that does not exist,
is stopped, or whose ClusterQueue is stopped, inactive or not for this namespace, leaves the job suspended, and only the
Workload says why. Where Kueue does not manage the namespace (`managedJobsNamespaceSelector`) there is not even a
Workload. Where it does not manage MPIJobs at all the label is without effect: the job starts at once, outside the
quota.

It is a warning, because a queue may be created, or started again, after the job. What is unknown is not warned about.
"""

from collections.abc import Iterator
from itertools import islice

from webhook.api.kueue import FRAMEWORK, QUEUE_NAME
from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.settings import WarningRuleSettings
from webhook.predict.kueue import queues
from webhook.predict.kueue.managed import Unmanaged, unmanaged
from webhook.predict.kueue.queues import QueueFault, State
from webhook.rules import CauseReason, Violation, rule

LABEL = f"metadata.labels[{QUEUE_NAME}]"

_SHOWN = 3


class Settings(WarningRuleSettings):
    """What a queue that takes no job leads to."""


@rule("local-queue", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Whether Kueue manages the job; then the LocalQueue and its ClusterQueue."""
    name = job.labels.get(QUEUE_NAME)
    if not name:
        return
    match unmanaged(ctx.view, ctx.namespace):
        case Unmanaged.FRAMEWORK:
            fix = f"Remove it, or let Kueue manage {FRAMEWORK}."
            yield Violation(LABEL, "Kueue does not manage MPIJobs here", fix=fix)
            return
        case Unmanaged.NAMESPACE:
            fix = "Remove the label."
            message = "Kueue does not manage this namespace: the job would wait for ever"
            yield Violation(LABEL, message, fix=fix, reason=CauseReason.FORBIDDEN)
            return
    if fault := queues.fault(ctx.view, ctx.namespace, name):
        yield Violation(LABEL, _message(name, fault), fix=_fix(ctx, name), reason=CauseReason.NOT_SUPPORTED)


def _message(name: str, fault: QueueFault) -> str:
    match fault.state:
        case State.ABSENT:
            return f"LocalQueue {name} doesn't exist"
        case State.STOPPED:
            return f"LocalQueue {name} is stopped ({fault.detail})"
        case State.NO_CLUSTER_QUEUE:
            return f"ClusterQueue {fault.cluster_queue} doesn't exist"
        case State.CLUSTER_QUEUE_STOPPED:
            return f"ClusterQueue {fault.cluster_queue} is stopped ({fault.detail})"
        case State.INACTIVE:
            return f"ClusterQueue {fault.cluster_queue} is inactive ({fault.detail})"
        case State.NAMESPACE:
            return f"namespace doesn't match ClusterQueue {fault.cluster_queue} selector"


def _fix(ctx: Context, name: str) -> str:
    """Queues that take jobs: the first few by name."""
    others = [other for other, _ in islice(queues.usable(ctx.view, ctx.namespace), _SHOWN + 1) if other != name]
    if not others:
        return "Ask your administrator for a queue."
    return f"Use {' or '.join(others[:_SHOWN])}."
