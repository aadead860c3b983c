"""Checks that the jobs in conversion tests have every field of the Go types in the older operators' modules."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.toolchain import find_go, go_environment
from tests.support.older_jobs import FIELDS, V1, V1ALPHA1, V1ALPHA2

_MPI_OPERATOR: Final = "github.com/kubeflow/mpi-operator@v0.3.0"
_TRAINING_OPERATOR: Final = "github.com/kubeflow/training-operator@v1.9.3"
# The version in the go.mod of mpi-operator v0.3.0.
_COMMON: Final = "github.com/kubeflow/common@v0.3.3"
_COMMON_TYPES: Final = (_COMMON, "pkg/apis/common/v1/types.go")
SOURCES: Final = {
    V1: [
        [(_TRAINING_OPERATOR, f"pkg/apis/kubeflow.org/v1/{name}_types.go") for name in ("mpi", "common")],
        [(_MPI_OPERATOR, "pkg/apis/kubeflow/v1/types.go"), _COMMON_TYPES],
    ],
    V1ALPHA2: [[(_MPI_OPERATOR, "pkg/apis/kubeflow/v1alpha2/types.go"), _COMMON_TYPES]],
    V1ALPHA1: [[(_MPI_OPERATOR, "pkg/apis/kubeflow/v1alpha1/types.go")]],
}
Structs = dict[str, dict[str, str]]


def folder(module: str) -> Path:
    """The folder of a Go module in Go's cache. A missing module is downloaded."""
    go = find_go((1, 21), say=print)
    done = subprocess.run(
        [go, "mod", "download", "-json", module], capture_output=True, text=True, check=True, env=go_environment()
    )
    return Path(json.loads(done.stdout)["Dir"])


def structs(source: str) -> Structs:
    """For each struct, the types of its fields by their JSON names."""
    found = re.findall(r"^type (\w+) struct \{\n(.*?)^\}", source, re.DOTALL | re.MULTILINE)
    return {
        name: {tag: kind for kind, tag in re.findall(r"^\t\w+\s+(\S+)\s+`json:\"(\w+)[,\"]", body, re.MULTILINE)}
        for name, body in found
    }


def fields(types: Structs, kind: str, path: str) -> Iterator[str]:
    """The paths of all fields of a type. Types of other modules are not followed."""
    name = kind.rpartition("]")[2].lstrip("*").rpartition(".")[2]
    if "mpiReplicaSpecs" in path and kind.startswith("map["):
        for role in ("Launcher", "Worker"):
            yield from fields(types, name, f"{path}.{role}")
    elif name not in types or not types[name]:
        yield path
    else:
        for key, inner in types[name].items():
            yield from fields(types, inner, f"{path}.{key}")


@pytest.mark.parametrize("version", SOURCES)
def test_sample_jobs_have_every_field_of_the_go_types(version: str) -> None:
    found: set[str] = set()
    for files in SOURCES[version]:
        types: Structs = {}
        for module, path in files:
            types |= structs((folder(module) / path).read_text(encoding="utf-8"))
        found |= set(fields(types, "MPIJobSpec", "spec"))
    assert found == set(FIELDS[version])
