"""Predicts whether Kueue manages a namespace's jobs (kueue `pkg/controller/jobframework/{reconciler,setup}.go`)."""

from enum import Enum
from typing import Final

from webhook.api.kueue import FRAMEWORK
from webhook.api.mpijob import MPIJob
from webhook.cluster.resources.kueue_config import KUEUE_CONFIG, KueueConfig
from webhook.cluster.resources.local_queues import LOCAL_QUEUES
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import UNKNOWN, ClusterView, Unknown
from webhook.predict import other_jobs

# A namespace that comes from a file may lack this label, which every namespace in a cluster has.
_NAME: Final = "kubernetes.io/metadata.name"


class Unmanaged(Enum):
    """Why Kueue does not manage jobs of a kind in a namespace."""

    FRAMEWORK = "framework"  # Kueue manages no job of this kind, so a queue label has no effect
    NAMESPACE = "namespace"  # Kueue's webhook suspends a job with a queue label, and nothing resumes it


def is_there(view: ClusterView) -> bool:
    """True if Kueue is certainly installed: its API or its configuration is visible."""
    return view.all(LOCAL_QUEUES) is not UNKNOWN or configuration(view) is not UNKNOWN


def configuration(view: ClusterView) -> KueueConfig | Unknown:
    """Kueue's configuration; UNKNOWN if the number of configurations is not 1."""
    configurations = view.all(KUEUE_CONFIG)
    if configurations is UNKNOWN or len(configurations) != 1:
        return UNKNOWN
    return next(iter(configurations.values()))


def unmanaged(view: ClusterView, namespace: str, framework: str = FRAMEWORK) -> Unmanaged | Unknown | None:
    """Why Kueue would not manage a job with a queue in this namespace; None if it would."""
    config = configuration(view)
    if config is UNKNOWN:
        return UNKNOWN
    if framework not in config.frameworks:
        return Unmanaged.FRAMEWORK
    labels = namespace_labels(view, namespace)
    if labels is UNKNOWN:
        return UNKNOWN
    if config.namespaces.matches(labels) or config.selector_holds is False:
        return None
    return UNKNOWN if config.selector_holds is None else Unmanaged.NAMESPACE


def manages(view: ClusterView, namespace: str, framework: str = FRAMEWORK) -> bool | Unknown:
    reason = unmanaged(view, namespace, framework)
    return UNKNOWN if reason is UNKNOWN else reason is None


def framework(job: MPIJob) -> str:
    """The name of the job's kind in Kueue's list of frameworks."""
    other = other_jobs.of_job(job)
    return other.framework if other else FRAMEWORK


def suspends_all(view: ClusterView, namespace: str) -> bool:
    """True if Kueue certainly suspends every job in this namespace, including jobs without a queue."""
    config, labels = configuration(view), namespace_labels(view, namespace)
    if config is UNKNOWN or labels is UNKNOWN:
        return False
    return FRAMEWORK in config.frameworks and config.manages_without_queue and config.namespaces.matches(labels)


def suspends(view: ClusterView, namespace: str, job: MPIJob, *, queued: bool) -> bool:
    """True if Kueue's webhook suspends a new job (kueue `jobframework/utils.go`, `WorkloadShouldBeSuspended`).

    `queued`: the job names a queue, or Kueue gives it one. If Kueue's configuration is unknown, Kueue is assumed to
    manage MPIJobs. False for a job with an owner, because Kueue may start it at once.
    """
    if job.owned:
        return False
    if not queued:
        return suspends_all(view, namespace)
    return unmanaged(view, namespace, framework(job)) is not Unmanaged.FRAMEWORK


def namespace_labels(view: ClusterView, namespace: str) -> dict[str, str] | Unknown:
    stored = view.get(NAMESPACES, namespace)
    return {_NAME: namespace, **stored.labels} if isinstance(stored, Namespace) else UNKNOWN
