"""Converts an MPIJob of an older version to v2beta1."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from webhook.api.mpijob import API_VERSION, LAUNCHER, OLDER_VERSIONS
from webhook.converters.fields import maps, take
from webhook.converters.report import ConversionError, Converted, Report
from webhook.converters.stored_jobs import metadata, report_status
from webhook.parts.older_versions import v1, v1alpha1, v1alpha2
from webhook.parts.older_versions.replica_specs import Options

_SPECS: Final[dict[str, Callable[[dict[str, Any], Options, Report], dict[str, Any]]]] = dict(
    zip(OLDER_VERSIONS, (v1.convert, v1alpha2.convert, v1alpha1.convert), strict=True)
)


def convert(document: dict[str, Any], options: Options | None = None) -> Converted:
    """Returns the job in v2beta1; ConversionError if it cannot be converted. `document` is not changed."""
    options = options or Options()
    old, report = dict(document), Report()
    version = take(old, "apiVersion", str, "MPIJob") or ""
    if version not in _SPECS:
        versions = ", ".join((*OLDER_VERSIONS, API_VERSION))
        raise ConversionError("apiVersion", f'"{version[:100]}" is not a known version of MPIJob ({versions})')
    spec = take(old, "spec", dict, "MPIJob")
    new: dict[str, Any] = {"apiVersion": API_VERSION, "kind": old.pop("kind")}
    report.mapped("apiVersion", f"is {API_VERSION} now, and was {version}")
    written = take(old, "metadata", dict, "MPIJob")
    if written is not None:
        new["metadata"] = metadata(written, report)
    new["spec"] = converted = convert_spec(version, deepcopy(spec), options, report)
    if options.ssh_path:
        converted["sshAuthMountPath"] = options.ssh_path
    report_status(old.pop("status", None), report)
    for key in old:
        report.lost(key, "MPIJobs have no such field")
    _report_images_and_scripts(converted, report)
    return Converted(new, report)


def convert_spec(version: str, spec: Any, options: Options, report: Report) -> dict[str, Any]:
    if not isinstance(spec, dict):
        raise ConversionError("spec", "is not set" if spec is None else "is not a mapping")
    return _SPECS[version](spec, options, report)


def _report_images_and_scripts(spec: dict[str, Any], report: Report) -> None:
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
            f'"{image[:200]}" needs {needs}: older operators used kubectl exec, so the image may have no ssh',
        )
    report.changed(
        "hostfile",
        "/etc/mpi/hostfile has full host names now: adapt scripts that read it or use names of hosts",
    )
    report.changed(
        "kubectl-delivery",
        "there is no kubectl at /opt/kube, and the launcher no longer has permission to exec into pods",
    )
