"""Removes the fields of a stored job that a new job does not have."""

from typing import Any

from webhook.api.metadata import LAST_APPLIED, SET_BY_SERVER
from webhook.converters.fields import maps
from webhook.converters.report import Report


def report_status(status: Any, report: Report) -> None:
    """Reports the status as lost, and tells the user to wait for a running job."""
    if status is None:
        return
    report.lost("status", "is that of the job that ran")
    conditions = maps(status, "conditions")
    states = [condition.get("type") for condition in conditions if condition.get("status") == "True"]
    states += [status.get("launcherStatus")] if isinstance(status, dict) else []  # v1alpha1
    if ended := next((state for state in ("Succeeded", "Failed") if state in states), ""):
        report.to_do("status", f"the job has ended ({ended}): leave it out, or it runs once more")
    elif "Running" in states or "Active" in states:
        report.to_do("status", "the job is running: the new one begins at the beginning, so wait for its end")


def metadata(stored: dict[str, Any], report: Report) -> dict[str, Any]:
    """The metadata for a new job, without the fields that the API server and kubectl have written."""
    new = dict(stored)
    for key in SET_BY_SERVER:
        if key in new:
            del new[key]
            report.lost(f"metadata.{key}", "is set by the API server")
    annotations = new.get("annotations")
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        new["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
        report.lost(f"metadata.annotations[{LAST_APPLIED}]", "is kubectl's copy of the old job")
        if not new["annotations"]:
            del new["annotations"]
    return new
