"""Checks that the jobs in conversion tests have every field of the Go types in the older operators' modules."""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.installation.go_module import module
from tests.support.older_jobs import FIELDS, V1, V1ALPHA1, V1ALPHA2

_MPI_OPERATOR: Final = ("github.com/kubeflow/mpi-operator", "v0.3.0")
_TRAINING_OPERATOR: Final = ("github.com/kubeflow/training-operator", "v1.9.3")
# The version in the go.mod of mpi-operator v0.3.0.
_COMMON: Final = ("github.com/kubeflow/common", "v0.3.3")
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


def structs(source: str) -> Structs:
    """For each struct, the types of its fields by their JSON names."""
    return {
        name: {tag: kind for kind, tag in re.findall(r"^\t\w+\s+(\S+)\s+`json:\"(\w+)[,\"]", body, re.MULTILINE)}
        for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", source, re.DOTALL | re.MULTILINE)
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
    upstream: set[str] = set()
    for files in SOURCES[version]:
        types: Structs = {}
        for name, path in files:
            types |= structs((module(*name) / path).read_text(encoding="utf-8"))
        upstream |= set(fields(types, "MPIJobSpec", "spec"))
    assert upstream == set(FIELDS[version])
