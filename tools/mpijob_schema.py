"""Writes the packaged schema of MPIJobs from the CRD in the pinned module of mpi-operator: `make schema`."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.assets import assets
from webhook.api import crd_schema

GO_MOD = Path(__file__).parents[1] / "tests" / "controlplane" / "go.mod"


def text() -> str:
    """The text of the file. Each line has one distinct node of the schema, called a shape."""
    crd: Any = yaml.safe_load(assets().mpijob_crd.read_text(encoding="utf-8"))
    (version,) = (version for version in crd["spec"]["versions"] if version["name"] == "v2beta1")
    shapes = crd_schema.short_form(version["schema"]["openAPIV3Schema"])
    lines = ",\n".join(json.dumps(shape, separators=(",", ":")) for shape in shapes)
    return f'{{"origin":"mpi-operator {release()}","shapes":[\n{lines}\n]}}\n'


def release() -> str:
    required = re.search(r"github.com/kubeflow/mpi-operator (\S+)", GO_MOD.read_text(encoding="utf-8"))
    assert required
    return required[1]


if __name__ == "__main__":
    target = files("webhook.api").joinpath(crd_schema.FILE)
    Path(str(target)).write_text(text(), encoding="utf-8")
