"""The queue that a job names takes jobs from its namespace.

Kueue suspends a job with the label `kueue.x-k8s.io/queue-name` and looks at nothing else: a queue that does not exist,
is stopped, or whose ClusterQueue is stopped, inactive or not for this namespace, leaves the job suspended, and only the
Workload says why. Where Kueue does not manage the namespace (`managedJobsNamespaceSelector`) there is not even a
Workload. Where it does not manage MPIJobs at all the label is without effect: the job starts at once, outside the
quota.

It is a warning, because a queue may be created, or started again, after the job. What is unknown is not warned about.
"""

from collections.abc import Iterator

from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import WarningRuleSettings
from webhook.predict.kueue import queues
from webhook.predict.kueue.managed import Unmanaged, framework, unmanaged
from webhook.rules import CauseReason, Violation, rule

LABEL = f"metadata.labels[{QUEUE_NAME}]"


class Settings(WarningRuleSettings):
    """What a queue that takes no job leads to."""


@rule("local-queue", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Whether Kueue manages the job; then the LocalQueue and its ClusterQueue."""
    name = job.labels.get(QUEUE_NAME)
    if not name:
        return
    match unmanaged(ctx.view, ctx.namespace, framework(job)):
        case Unmanaged.FRAMEWORK:
            kind = job.kind or "MPIJob"
            message = f"Kueue does not manage {kind}s here (its configuration lacks {framework(job)})"
            yield Violation(LABEL, message, fix="Remove it, or enable them.")
            return
        case Unmanaged.NAMESPACE:
            message = "Kueue does not manage this namespace (the job would wait for ever)"
            yield Violation(LABEL, message, fix="Remove it.", reason=CauseReason.FORBIDDEN)
            return
    if fault := queues.fault(ctx.view, ctx.namespace, name):
        yield Violation(
            LABEL,
            fault.in_words(name),
            fix=queues.advice(ctx.view, ctx.namespace, name),
            reason=CauseReason.NOT_SUPPORTED,
        )
