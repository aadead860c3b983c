"""An MPIJob of an older version, made into one of v2beta1."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from webhook.api.metadata import LAST_APPLIED, SET_BY_SERVER
from webhook.api.mpijob import API_VERSION, LAUNCHER, OLDER_VERSIONS
from webhook.converters.report import ConversionError, Converted, Report
from webhook.parts.older_versions import v1, v1alpha1, v1alpha2
from webhook.parts.older_versions.fields import maps, take
from webhook.parts.older_versions.options import Options

_SPECS: Final[dict[str, Callable[[dict[str, Any], Options, Report], dict[str, Any]]]] = dict(
    zip(OLDER_VERSIONS, (v1.convert, v1alpha2.convert, v1alpha1.convert), strict=True)
)


def convert(document: dict[str, Any], options: Options | None = None) -> Converted:
    """The job as one of v2beta1; ConversionError where that cannot be. `document` stays as it is."""
    options = options or Options()
    old, report = dict(document), Report()
    version = take(old, "apiVersion", str, "MPIJob") or ""
    if version not in _SPECS:
        known = ", ".join((*OLDER_VERSIONS, API_VERSION))
        raise ConversionError("apiVersion", f'"{version[:100]}" is no version of MPIJob that is known ({known})')
    spec = take(old, "spec", dict, "MPIJob")
    if spec is None:
        raise ConversionError("spec", "is not set")
    new: dict[str, Any] = {"apiVersion": API_VERSION, "kind": old.pop("kind")}
    report.mapped("apiVersion", f"is {API_VERSION} now, and was {version}")
    metadata = take(old, "metadata", dict, "MPIJob")
    if metadata is not None:
        new["metadata"] = _metadata(metadata, report)
    new["spec"] = converted = convert_spec(version, deepcopy(spec), options, report)
    if options.ssh_path:
        converted["sshAuthMountPath"] = options.ssh_path
    _life(old.pop("status", None), report)
    for key in old:
        report.lost(key, "MPIJobs have no such field")
    _in_images(converted, report)
    return Converted(new, report)


def convert_spec(version: str, written: Any, options: Options, report: Report) -> dict[str, Any]:
    """The spec of a job of this version as v2beta1 has it; ConversionError where that cannot be."""
    if not isinstance(written, dict):
        raise ConversionError("spec", "is not set" if written is None else "is not a mapping")
    return _SPECS[version](written, options, report)


def _life(status: Any, report: Report) -> None:
    """What became of the job: made anew, it begins at the beginning."""
    if status is None:
        return
    report.lost("status", "is that of the job that ran")
    states = [each.get("type") for each in maps(status, "conditions") if each.get("status") == "True"]
    states += [status.get("launcherStatus")] if isinstance(status, dict) else []  # of v1alpha1
    if ended := next((each for each in ("Succeeded", "Failed") if each in states), ""):
        report.to_do("status", f"the job has ended ({ended}): leave it out, or it runs once more")
    elif "Running" in states or "Active" in states:
        report.to_do("status", "the job is running: the new one begins at the beginning, so wait for its end")


def _metadata(written: dict[str, Any], report: Report) -> dict[str, Any]:
    metadata = dict(written)
    for key in SET_BY_SERVER:
        if key in metadata:
            del metadata[key]
            report.lost(f"metadata.{key}", "is set by the API server")
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
        report.lost(f"metadata.annotations[{LAST_APPLIED}]", "is kubectl's copy of the old job")
        if not metadata["annotations"]:
            del metadata["annotations"]
    return metadata


def _in_images(spec: dict[str, Any], report: Report) -> None:
    """What no conversion can do, for every job."""
    images: dict[str, str] = {}
    for role, replica in spec["mpiReplicaSpecs"].items():
        image = maps(replica["template"]["spec"], "containers")[0].get("image")
        if isinstance(image, str):
            images.setdefault(image, role)
    for image, role in images.items():
        needs = "ssh with StrictHostKeyChecking no"
        if role != LAUNCHER or len(images) == 1:
            needs = f"sshd with StrictModes no and {needs}"
        report.to_do(
            "image",
            f'"{image[:200]}" needs {needs}: older operators used kubectl exec, so it may have none',
        )
    report.changed(
        "hostfile",
        "/etc/mpi/hostfile has full host names now: a script that reads it, or knows hosts by name, must fit",
    )
    report.changed(
        "kubectl-delivery",
        "there is no kubectl at /opt/kube, and the launcher gets no right to exec into pods any more",
    )
