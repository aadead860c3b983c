"""The parts of a stored job that a new job does not have."""

from typing import Any

from webhook.api.metadata import LAST_APPLIED, SET_BY_SERVER
from webhook.converters.fields import maps
from webhook.converters.report import Report


def life(status: Any, report: Report) -> None:
    """The status of the job: a converted job starts from the beginning."""
    if status is None:
        return
    report.lost("status", "is that of the job that ran")
    states = [each.get("type") for each in maps(status, "conditions") if each.get("status") == "True"]
    states += [status.get("launcherStatus")] if isinstance(status, dict) else []  # v1alpha1
    if ended := next((each for each in ("Succeeded", "Failed") if each in states), ""):
        report.to_do("status", f"the job has ended ({ended}): leave it out, or it runs once more")
    elif "Running" in states or "Active" in states:
        report.to_do("status", "the job is running: the new one begins at the beginning, so wait for its end")


def metadata(written: dict[str, Any], report: Report) -> dict[str, Any]:
    """The metadata for a new job, without what the API server and controllers wrote."""
    kept = dict(written)
    for key in SET_BY_SERVER:
        if key in kept:
            del kept[key]
            report.lost(f"metadata.{key}", "is set by the API server")
    annotations = kept.get("annotations")
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        kept["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
        report.lost(f"metadata.annotations[{LAST_APPLIED}]", "is kubectl's copy of the old job")
        if not kept["annotations"]:
            del kept["annotations"]
    return kept
