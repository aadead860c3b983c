"""Writes the patch that adds older versions to the CRD of the pinned mpi-operator: `make schema`.

Pod templates, `runPolicy` and `status` have the schema of v2beta1. With a different schema, an older version could
allow values that the operator cannot read.
"""

from typing import Any, Final

import jsonpatch
import yaml

from tests.controlplane.assets import assets
from tests.support.paths import MANIFESTS
from tools.mpijob_schema import release
from webhook import PROGRAM

FILE: Final = MANIFESTS / "older-versions" / "versions.yaml"
_INT32: Final = {"type": "integer", "format": "int32"}
_INT64: Final = {"type": "integer", "format": "int64"}
_TEXT: Final = {"type": "string"}
_BOOLEAN: Final = {"type": "boolean"}
# The Go types are named in tests/support/older_jobs.py.
_V1: Final = {"cleanPodPolicy": _TEXT, "mainContainer": _TEXT}
_V1ALPHA2: Final = {
    **_V1,
    "backoffLimit": _INT32,
    "activeDeadlineSeconds": _INT64,
    "mpiDistribution": {"type": "string", "enum": ["OpenMPI", "IntelMPI", "MPICH"]},
}
_V1ALPHA1: Final = {
    **dict.fromkeys(("gpus", "gpusPerNode", "processingUnits", "processingUnitsPerNode", "replicas"), _INT32),
    "processingResourceType": _TEXT,
    "launcherOnMaster": _BOOLEAN,
    "backoffLimit": _INT32,
    "activeDeadlineSeconds": _INT64,
}


def text() -> str:
    head = f"Written by `make schema` out of mpi-operator {release()}: changes here are lost."
    return f"# {head}\n{yaml.safe_dump(operations(), sort_keys=False, width=160, default_flow_style=None)}"


def operations() -> list[dict[str, Any]]:
    crd: Any = yaml.safe_load(assets().mpijob_crd.read_text(encoding="utf-8"))
    (newest,) = crd["spec"]["versions"]
    schema = _plain(newest["schema"]["openAPIV3Schema"]["properties"])
    spec, status = schema["spec"]["properties"], schema["status"]
    template = spec["mpiReplicaSpecs"]["additionalProperties"]["properties"]["template"]
    common = {key: spec[key] for key in ("runPolicy", "mpiReplicaSpecs")}
    slots = {"slotsPerWorker": spec["slotsPerWorker"]}
    versions = [
        _version("v1", {**slots, **common, **_V1}, status, required=["mpiReplicaSpecs"]),
        _version("v1alpha2", {**slots, **common, **_V1ALPHA2}, status, required=["mpiReplicaSpecs"]),
        _version("v1alpha1", {"slotsPerWorker": _INT32, "template": template, **common, **_V1ALPHA1}, status),
    ]
    service = {"namespace": PROGRAM, "name": PROGRAM, "port": 443, "path": "/convert"}
    conversion = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]},
    }
    return [
        {"op": "test", "path": "/spec/versions/0/name", "value": newest["name"]},
        *({"op": "add", "path": "/spec/versions/-", "value": version} for version in versions),
        {"op": "add", "path": "/spec/conversion", "value": conversion},
    ]


def crd(client_config: dict[str, Any]) -> dict[str, Any]:
    patched: dict[str, Any] = jsonpatch.apply_patch(
        yaml.safe_load(assets().mpijob_crd.read_text(encoding="utf-8")),
        yaml.safe_load(FILE.read_text(encoding="utf-8")),
    )
    patched["spec"]["conversion"]["webhook"]["clientConfig"] = client_config
    return patched


def _version(name: str, spec: dict[str, Any], status: Any, required: list[str] | None = None) -> dict[str, Any]:
    schema = {"type": "object", "properties": spec, **({"required": required} if required else {})}
    warning = f"kubeflow.org/{name} of MPIJob goes away: `{PROGRAM} convert FILE` converts the job."
    return {
        "name": name,
        "served": True,
        "storage": False,
        "deprecated": True,
        "deprecationWarning": warning,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": status}}},
    }


def _plain(node: Any) -> Any:
    """A schema without descriptions. A field with the name `description` stays."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _plain(value) for key, value in node.items() if key != "description" or not isinstance(value, str)}


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
