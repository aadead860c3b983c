"""Converts `spec.runPolicy`. Older versions have some of its fields in `spec`."""

from typing import Any, Final

from webhook.converters.fields import drop_unknown, keep, take
from webhook.converters.report import Report

PATH: Final = "spec.runPolicy"
FIELDS: Final = (
    "cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "schedulingPolicy", "suspend",
    "managedBy",
)  # fmt: skip
# Source: training-operator `pkg/apis/kubeflow.org/v1/common_types.go`, `KubeflowJobsController`.
TRAINING_OPERATOR: Final = "kubeflow.org/training-operator"


def read(spec: dict[str, Any], report: Report) -> dict[str, Any]:
    written = dict(take(spec, "runPolicy", dict, "spec") or {})
    policy: dict[str, Any] = {}
    keep(written, policy, *FIELDS)
    drop_unknown(written, PATH, report)
    if policy.get("managedBy") == TRAINING_OPERATOR:
        del policy["managedBy"]
        report.lost(f"{PATH}.managedBy", "named the training operator; with it the MPI operator would ignore the job")
    return policy


def move(spec: dict[str, Any], policy: dict[str, Any], key: str, report: Report, *, outer_wins: bool = False) -> None:
    """Moves the field `key` from `spec` to `policy`.

    `outer_wins` means that the old operator used the value in `spec` if both `spec` and the policy had the field.
    """
    value = spec.pop(key, None)
    if value is None:
        return
    path, inner = f"spec.{key}", f"{PATH}.{key}"
    if policy.get(key) is None:
        report.mapped(path, f"is {inner} now")
    elif policy[key] == value:
        report.mapped(path, f"is already set by {inner}")
        return
    elif not outer_wins:
        report.lost(path, f"{inner} was used, and stays")
        return
    else:
        report.lost(inner, f"{path} was used, and replaces it")
        report.mapped(path, f"is {inner} now")
    policy[key] = value


def report_ignored(policy: dict[str, Any], keys: tuple[str, ...], report: Report, of: str = "the old operator") -> None:
    for key in keys:
        if policy.get(key):
            report.changed(f"{PATH}.{key}", f"{of} ignored it in this version; it has an effect now")
