"""Finds requested resources that have no quota in the job's ClusterQueue. Kueue never admits such a job.

As in kueue `pkg/scheduler/flavorassigner/flavorassigner.go` (`resource X unavailable in ClusterQueue`).
"""

from collections.abc import Iterable, Sequence

from webhook.api import annotations
from webhook.cluster.view import UNKNOWN, ClusterView
from webhook.predict.kueue import queues
from webhook.predict.kueue.managed import configuration, manages


def not_covered(view: ClusterView, namespace: str, label: object, resources: Iterable[str]) -> str:
    """Why a job with this queue label cannot request these resources; empty if it certainly can."""
    resources = sorted(resources)
    queue = queues.of_job(view, namespace, label) if resources else ""
    if queue is UNKNOWN:
        return "the job's Kueue queue is unknown"
    return _lacking(view, namespace, queue, resources) if queue else ""


def _lacking(view: ClusterView, namespace: str, queue: str, resources: Sequence[str]) -> str:
    if manages(view, namespace) is False:
        return ""
    behind = queues.cluster_queue(view, namespace, queue)
    if behind is None:
        return f"the resources of the ClusterQueue of {annotations.quoted(queue)} are unknown"
    covered = {name for group in behind.groups for name in group.covered}
    lacking = [name for name in resources if name not in covered]
    config = configuration(view)
    if config is not UNKNOWN:
        if config.ignores_undeclared:
            return ""
        lacking = [name for name in lacking if not config.leaves_out(name)]
    return f"ClusterQueue {behind.name} does not cover {lacking[0]}" if lacking else ""
