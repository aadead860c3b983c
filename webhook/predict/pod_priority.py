"""The API server's Priority admission. It derives a pod's priority from its class and rejects a different value.

https://github.com/kubernetes/kubernetes/blob/v1.35.4/plugin/pkg/admission/priority/admission.go
"""

from typing import Final

from webhook.cluster.resources.priority_classes import PRIORITY_CLASSES, PriorityClass
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView, Unknown

# The API server creates deleted built-in classes again (kubernetes `pkg/apis/scheduling/v1/helpers.go`).
BUILT_IN: Final = {
    name: PriorityClass(name, value)
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
}
NO_CLASS: Final = PriorityClass("")
"""The class of pods without a class name, in a cluster without a default class."""


def class_of_pods(view: ClusterView, name: str | None) -> PriorityClass | Unknown | None:
    """The class of pods with this class name; None if no class has the name."""
    if not name:
        return default_class(view)
    if name in BUILT_IN:
        return BUILT_IN[name]
    stored = view.get(PRIORITY_CLASSES, name)
    return None if stored is ABSENT else stored


def default_class(view: ClusterView) -> PriorityClass | Unknown:
    """The class of pods without a class name: the global default with the lowest value."""
    classes = view.all(PRIORITY_CLASSES)
    if classes is UNKNOWN:
        return UNKNOWN
    defaults = (priority_class for priority_class in classes.values() if priority_class.global_default)
    return min(defaults, key=lambda priority_class: (priority_class.value, priority_class.name), default=NO_CLASS)
