"""Whether clients of an older version can read a spec: for one client of Go a wrong type anywhere fails a whole list.

Pod templates and `runPolicy` have the schema that they have in v2beta1, in the CRD with older versions too
(`manifests/older-versions`). Beyond it a number has to fit into 32 bits, which no schema says, and an amount has to be
a quantity.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from webhook.api.crd_schema import ANY, TYPES, Shape, packaged
from webhook.api.mpijob import OLDER_VERSIONS
from webhook.api.quantity import QuantityError, parse

_TEXT: Final = Shape("string")
_NUMBER: Final = Shape("integer")
_V1: Final = {"cleanPodPolicy": _TEXT, "mainContainer": _TEXT}
_V1ALPHA2: Final = {**_V1, "backoffLimit": _NUMBER, "activeDeadlineSeconds": _NUMBER, "mpiDistribution": _TEXT}
_SIZES: Final = ("gpus", "gpusPerNode", "processingUnits", "processingUnitsPerNode", "replicas")
_V1ALPHA1: Final = {
    **dict.fromkeys((*_SIZES, "backoffLimit", "activeDeadlineSeconds"), _NUMBER),
    "processingResourceType": _TEXT,
    "launcherOnMaster": Shape("boolean"),
}
OWN_FIELDS: Final = dict(zip(OLDER_VERSIONS, (_V1, _V1ALPHA2, _V1ALPHA1), strict=True))
"""What is in the spec of a version and not in that of v2beta1, `template` of v1alpha1 besides."""
# Beside these quantities, what is a number or text is a port.
_PORT: Final = "port"
_MOST: Final = 2**31 - 1


class Fault(NamedTuple):
    """What stands in the way of reading a spec."""

    path: str
    text: str
    of_type: bool
    """Whether the API server would see it too, by the schema of the version."""


@cache
def _of_version(version: str) -> Shape:
    spec = packaged().root.fields["spec"]
    common = {key: spec.fields[key] for key in ("slotsPerWorker", "runPolicy", "mpiReplicaSpecs")}
    roles = common["mpiReplicaSpecs"].values
    template = {"template": roles.fields["template"]} if roles and version == OLDER_VERSIONS[-1] else {}
    return Shape("object", fields={**common, **template, **OWN_FIELDS[version]})


def faults(version: str, spec: Any) -> Iterator[Fault]:
    """Why clients of the version could not read the spec: fields that it does not have count too."""
    if spec is not None:
        yield from _faults(spec, _of_version(version), "spec", "spec")


def _faults(value: Any, shape: Shape, path: str, key: str) -> Iterator[Fault]:
    if value is None or shape.type == ANY:
        return
    types, words = TYPES[shape.type]
    if not isinstance(value, types) or isinstance(value, bool) != (shape.type == "boolean"):
        yield Fault(path, f"is not {words}", of_type=True)
    elif isinstance(value, dict):
        yield from _of_mapping(value, shape, path, key)
    elif isinstance(value, list):
        if shape.items == _TEXT and all(isinstance(each, str) for each in value):
            return  # of which there may be many
        for number, each in enumerate(value if shape.items else ()):
            yield from _faults(each, shape.items or shape, f"{path}[{number}]", key)
    elif shape.type == "quantity" and key != _PORT and not _is_quantity(value):
        yield Fault(path, "is no quantity", of_type=False)
    elif isinstance(value, int) and not -_MOST <= value <= _MOST and (shape.type != "quantity" or key == _PORT):
        yield Fault(path, "does not fit into 32 bits", of_type=False)


def _of_mapping(value: dict[str, Any], shape: Shape, path: str, key: str) -> Iterator[Fault]:
    if shape.values == _TEXT and all(isinstance(each, str) for each in value.values()):
        return
    for name, each in value.items():
        if shape.values:
            yield from _faults(each, shape.values, f"{path}[{name}]", key)
        elif name in shape.fields:
            yield from _faults(each, shape.fields[name], f"{path}.{name}", name)
        elif shape.fields and each is not None:
            yield Fault(f"{path}.{name}", "is no field of this version", of_type=False)


def _is_quantity(value: object) -> bool:
    try:
        parse(value)
    except QuantityError:
        return False
    return True
