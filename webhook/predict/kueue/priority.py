"""The classes that set a job's priority in Kueue. If a class does not exist, the job waits without a Workload.

As in kueue `pkg/controller/jobs/mpijob/mpijob_controller.go` (`PriorityClass`) and `jobframework`
(`ExtractPriority`).
"""

from collections.abc import Iterator
from typing import Final

from webhook.api.mpijob import MPIJob
from webhook.cluster.resources.workload_priority_classes import WORKLOAD_PRIORITY_CLASSES
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView, Unknown
from webhook.predict.pod_priority import class_of_pods

SCHEDULING_POLICY: Final = "spec.runPolicy.schedulingPolicy.priorityClass"


def priority_classes(job: MPIJob) -> Iterator[tuple[str, str]]:
    """(path, name) of each PriorityClass of a job; Kueue uses the first."""
    policy = job.run_policy.scheduling_policy
    if policy is not None and policy.priority_class:
        yield SCHEDULING_POLICY, policy.priority_class
    for _, path, replica in job.replicas:
        pod = replica.template.spec
        if pod is not None and pod.priority_class_name:
            yield f"{path}.template.spec.priorityClassName", pod.priority_class_name


def has_class(view: ClusterView, name: str) -> bool | Unknown:
    priority_class = class_of_pods(view, name)
    return UNKNOWN if priority_class is UNKNOWN else priority_class is not None


def has_workload_class(view: ClusterView, name: str) -> bool | Unknown:
    stored = view.get(WORKLOAD_PRIORITY_CLASSES, name)
    return UNKNOWN if stored is UNKNOWN else stored is not ABSENT
