"""Changes of jobs as lines `PATH: YAML`. PATH is a path of `tests.support.jobs.changed` or starts with a short name."""

from typing import Any, Final

from tests.support.jobs import REMOVE
from webhook.api import yaml

_ANNOTATION: Final = "metadata.annotations.training\\.openshift\\.io/{}"
_FIRST: Final = "Worker.template.spec.containers.0"
_LAUNCHED: Final = "Launcher.template.spec.containers.0"
SHORT: Final = {
    "launcher": "Launcher.template.spec",
    "launched": _LAUNCHED,
    "run": f"{_LAUNCHED}.command",
    "pod": "Worker.template.spec",
    "first": _FIRST,
    "gpu": f"{_FIRST}.resources.limits.nvidia\\.com/gpu",
    "gpu-request": f"{_FIRST}.resources.requests.nvidia\\.com/gpu",
    "gang": "spec.runPolicy.schedulingPolicy",
    "queue": "metadata.labels.kueue\\.x-k8s\\.io/queue-name",
    "timeout": _ANNOTATION.format("timeout"),
    "posture": _ANNOTATION.format("network-policy"),
}


def full_path(path: str) -> str:
    """The path, in which a short name is replaced by its full form."""
    first, dot, rest = path.partition(".")
    return SHORT.get(first, first) + dot + rest


def change(text: str) -> tuple[str, Any]:
    """(path, value) for `path: YAML`. If the YAML is empty, the value is REMOVE."""
    path, _, value = text.partition(":")
    return full_path(path), yaml.load_all(value)[0] if value.strip() else REMOVE
