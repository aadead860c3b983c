"""The API server's Priority admission of pods: it sets a pod's priority by class and rejects a different value.

https://github.com/kubernetes/kubernetes/blob/v1.35.4/plugin/pkg/admission/priority/admission.go
"""

from typing import Final

from webhook.cluster.resources.priority_classes import PRIORITY_CLASSES, PriorityClass
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView, Unknown

# If these are deleted, the API server creates them again (kubernetes `pkg/apis/scheduling/v1/helpers.go`).
BUILT_IN: Final = {
    name: PriorityClass(name, value)
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
}
NO_CLASS: Final = PriorityClass("")
"""The class of pods without a class name, in a cluster without a default class."""


def class_of_pods(view: ClusterView, name: str | None) -> PriorityClass | Unknown | None:
    """The class of pods with this class name; None if the class does not exist."""
    if not name:
        return default_class(view)
    if name in BUILT_IN:
        return BUILT_IN[name]
    known = view.get(PRIORITY_CLASSES, name)
    return None if known is ABSENT else known


def default_class(view: ClusterView) -> PriorityClass | Unknown:
    """The class of pods without a class name: the lowest of the global defaults."""
    classes = view.all(PRIORITY_CLASSES)
    if classes is UNKNOWN:
        return UNKNOWN
    candidates = (each for each in classes.values() if each.global_default)
    return min(candidates, key=lambda each: (each.value, each.name), default=NO_CLASS)
