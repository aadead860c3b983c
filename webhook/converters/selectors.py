"""Labels of pods that affinities and spread constraints select by, and that pods no longer have.

Old ones: mpi-operator v0.3.0 `pkg/controllers/v1/mpi_job_controller.go`, and training-operator's
`pkg/apis/kubeflow.org/v1/common_types.go`. New ones: mpi-operator v0.8.0 `pkg/apis/kubeflow/v2beta1/constants.go`.
"""

from collections.abc import Iterator
from typing import Any, Final

from webhook.converters.fields import maps
from webhook.converters.report import Report

JOB_ROLE: Final = "training.kubeflow.org/job-role"
KEYS: Final = {
    "mpi_job_name": "training.kubeflow.org/job-name",
    "mpi_role_type": JOB_ROLE,
    "group_name": "training.kubeflow.org/operator-name",
    "training.kubeflow.org/replica-type": JOB_ROLE,
}
_VALUES: Final = {
    "group_name": {"kubeflow.org": "mpi-operator"},
    JOB_ROLE: {"master": "launcher"},
    "training.kubeflow.org/operator-name": {"mpijob-controller": "mpi-operator"},
}


def change(pod: dict[str, Any], where: str, report: Report) -> None:
    """Rewrite the selectors of a pod, in place."""
    parts = {key: pod.get(key) for key in ("affinity", "topologySpreadConstraints")}
    for selector, path in _selectors(parts, where):
        labels = selector.get("matchLabels")
        if isinstance(labels, dict):
            new = {KEYS.get(key, key): _value(key, value) for key, value in labels.items()}
            for key in labels:
                if new.get(key) != labels[key]:
                    told = KEYS.get(key, key)
                    report.mapped(f"{path}.matchLabels[{key}]", f"is {told}: {new[told]} now, which is what pods have")
            selector["matchLabels"] = new
        for number, expression in enumerate(maps(selector, "matchExpressions")):
            _expression(expression, f"{path}.matchExpressions[{number}]", report)


def _expression(expression: dict[str, Any], path: str, report: Report) -> None:
    key, values = expression.get("key"), expression.get("values")
    if not isinstance(key, str):
        return
    expression["key"] = KEYS.get(key, key)
    if isinstance(values, list):
        expression["values"] = [_value(key, value) for value in values]
    if expression["key"] != key or expression.get("values") != values:
        report.mapped(path, f"selects by {expression['key']} now, which is what pods have")


def _value(key: str, value: Any) -> Any:
    return _VALUES.get(key, {}).get(value, value) if isinstance(value, str) else value


def _selectors(value: Any, path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Every selector of labels below this value."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "labelSelector" and isinstance(each, dict):
                yield each, f"{path}.{key}"
            yield from _selectors(each, f"{path}.{key}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _selectors(each, f"{path}[{number}]")
