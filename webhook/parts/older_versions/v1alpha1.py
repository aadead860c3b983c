"""MPIJobs of kubeflow.org/v1alpha1, for mpi-operator up to 0.2. Launcher and workers have the same template.

Source: https://github.com/kubeflow/mpi-operator/tree/v0.2.3/pkg (`apis/kubeflow/v1alpha1`,
`controllers/v1alpha1`: `allocateProcessingUnits`, `newWorker`, `newLauncher`).
"""

from typing import Any, Final

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.converters.fields import containers, copied, drop_unknown, keep, take
from webhook.converters.report import ConversionError, Report
from webhook.parts.older_versions import run_policy, transport
from webhook.parts.older_versions.replica_specs import NEVER, NEW_FIELDS, ON_FAILURE, Options

GPU: Final = "nvidia.com/gpu"
_SIZES: Final = ("gpus", "processingUnits", "replicas")
_PER_NODE: Final = {"gpus": "gpusPerNode", "processingUnits": "processingUnitsPerNode"}
_TEMPLATE: Final = "spec.template"
_CONTAINER: Final = f"{_TEMPLATE}.spec.containers[0]"


def convert(written: dict[str, Any], options: Options, report: Report) -> dict[str, Any]:
    spec = dict(written)
    if "mpiReplicaSpecs" in spec:
        raise ConversionError("spec.mpiReplicaSpecs", "is a field of later versions: correct apiVersion")
    new: dict[str, Any] = {}
    keep(spec, new, "slotsPerWorker", *NEW_FIELDS)
    template = take(spec, "template", dict, "spec")
    if template is None:
        raise ConversionError(_TEMPLATE, "is not set, so there is nothing to run")
    first = containers(template, _TEMPLATE)[0]
    if not isinstance(first.get("resources"), dict | None):
        raise ConversionError(f"{_CONTAINER}.resources", "is not a mapping")
    written_resource = take(spec, "processingResourceType", str, "spec")
    resource = written_resource if written_resource in {GPU, "cpu"} else GPU
    replicas, units = _size(spec, first, resource, options, report)
    if written_resource:
        _note_resource(written_resource, resource, units, report)
    if new.get("slotsPerWorker") is None and units > 0:
        new["slotsPerWorker"] = units
        report.mapped(
            "spec.slotsPerWorker", f"was not set, which meant the {units} {resource} of a worker; is written out now"
        )
    policy: dict[str, Any] = {}
    for key in ("backoffLimit", "activeDeadlineSeconds"):
        run_policy.move(spec, policy, key, report)
    if policy:
        new["runPolicy"] = policy
    if spec.pop("launcherOnMaster", None):
        report.lost(
            "spec.launcherOnMaster",
            "give the launcher's template a toleration and a node affinity for node-role.kubernetes.io/control-plane,"
            " if it is to run there",
        )
    new["mpiReplicaSpecs"] = {
        LAUNCHER: _launcher(template, report),
        WORKER: _worker(template, replicas, resource, units, report),
    }
    report.mapped(_TEMPLATE, "is the template of the Launcher and of Worker now")
    drop_unknown(spec, "spec", report)
    return new


def _note_resource(written: str, resource: str, units: int, report: Report) -> None:
    field = "spec.processingResourceType"
    if not units:
        report.lost(field, f"had no effect: the workers have no {resource} in their limits")
    elif written == resource:
        report.mapped(field, f"is {written} in the limits of the workers now")
    else:
        report.changed(field, f"is replaced by {GPU}: the old operator supported only {GPU} and cpu")


def _size(
    spec: dict[str, Any], container: dict[str, Any], resource: str, options: Options, report: Report
) -> tuple[int, int]:
    sizes = {key: number for key in _SIZES if (number := take(spec, key, int, "spec")) is not None}
    if len(sizes) > 1:
        raise ConversionError(
            f"spec.{next(iter(sizes))}", f"excludes {' and '.join(list(sizes)[1:])}: set only one of them"
        )
    if not sizes:
        raise ConversionError("spec.replicas", "is not set, and neither are gpus and processingUnits: set one of them")
    per_node = {key: take(spec, key, int, "spec") for key in _PER_NODE.values()}
    ((key, total),) = sizes.items()
    for other, number in per_node.items():
        if number is not None and other != _PER_NODE.get(key):
            report.lost(f"spec.{other}", f"had no effect next to spec.{key}")
    if key == "replicas":
        report.mapped("spec.replicas", "is the number of workers now")
        return total, _written_units(container, resource)
    field = _PER_NODE[key]
    units_per_node = per_node[field] if per_node[field] is not None else options.gpus_per_node
    if units_per_node is None and total > 1:
        raise ConversionError(
            f"spec.{field}",
            f"is not set, so a flag of the old operator divided the {total} {key} among the workers: set the field, or"
            " set --gpus-per-node to the flag's value (1 by default, 8 in the published manifests)",
        )
    workers, units = _divided(total, 1 if units_per_node is None else units_per_node, key)
    report.mapped(f"spec.{key}", f"is {workers} replicas of Worker with {units} {resource} each now")
    if per_node[field] is not None:
        report.mapped(f"spec.{field}", f"is in the limits of the workers now, as {units} of {resource}")
    return workers, units


def _divided(total: int, per_node: int, key: str) -> tuple[int, int]:
    if total < 1 or per_node < 1:
        raise ConversionError(f"spec.{key}", "cannot be divided among workers: both numbers must be 1 or more")
    if total < per_node:
        return 1, total
    if total % per_node:
        raise ConversionError(
            f"spec.{key}", f"{total} is not a multiple of the {per_node} per node: the old operator rejected it too"
        )
    return total // per_node, per_node


def _written_units(container: dict[str, Any], resource: str) -> int:
    limits = (container.get("resources") or {}).get("limits")
    value = str(limits.get(resource, 0)) if isinstance(limits, dict) else "0"
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0


def _launcher(written: dict[str, Any], report: Report) -> dict[str, Any]:
    template = copied(written)
    policy = template["spec"].pop("restartPolicy", None)
    converted = NEVER if policy == NEVER else ON_FAILURE
    report.mapped(
        f"{_TEMPLATE}.spec.restartPolicy",
        f"meant {converted} for the launcher, and Always for workers; each role has a restartPolicy now",
    )
    container = template["spec"]["containers"][0]
    if container.pop("resources", None) is not None:
        report.changed(f"{_CONTAINER}.resources", "apply only to the workers, as before: the launcher has none")
    transport.change(LAUNCHER, template, 0, _TEMPLATE, report)
    return {"replicas": 1, "restartPolicy": converted, "template": template}


def _worker(written: dict[str, Any], replicas: int, resource: str, units: int, report: Report) -> dict[str, Any]:
    template = copied(written)
    template["spec"].pop("restartPolicy", None)
    container = template["spec"]["containers"][0]
    for key in ("command", "args"):
        if container.pop(key, None) is not None:
            report.changed(
                f"{_CONTAINER}.{key}",
                "applies only to the launcher: workers slept in the old version, and run sshd now",
            )
    if units:
        # This is a copy, because several YAML aliases may share the object.
        resources = container["resources"] = {**(container.get("resources") or {})}
        for key in ("limits", "requests"):
            amounts = resources.get(key)
            if key == "limits" or (isinstance(amounts, dict) and resource in amounts):
                resources[key] = {**(amounts if isinstance(amounts, dict) else {}), resource: units}
        was = written["spec"]["containers"][0].get("resources")
        if was is not None and was != resources:
            report.changed(f"{_CONTAINER}.resources", f"{resource} is {units} on a worker, as the old operator set it")
    transport.change(WORKER, template, 0, _TEMPLATE, report)
    return {"replicas": replicas, "restartPolicy": ON_FAILURE, "template": template}
