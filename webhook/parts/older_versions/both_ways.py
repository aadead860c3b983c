"""Converts a job to a different version and back without loss, for a CRD with several versions.

Each version lacks fields of the others, and two annotations store the missing fields. WRITTEN_AS has the original spec
of a job that was created in an older version. SHOWN has the fields of v2beta1 that an older client does not see.

Later changes of a v2beta1 job, such as injections, are merged into the original spec. Each older spec is converted back
to v2beta1 as a test. If no older spec converts back to the job, the client gets the v2beta1 spec "as it is", plus the
fields of the original spec that only older versions have.

If an object is too large, its spec is not converted: a v2beta1 job is returned "as it is", a stored older job becomes
NO_JOB, and any other older job is rejected.

Any user may write the annotations, and the API server does not check them. The module checks the types of all their
fields: invalid fields could make jobs unreadable for the operator or older clients. One value with a wrong type even
makes a whole list fail for a client in Go.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from webhook.api import untyped
from webhook.api.crd_schema import ANY, TYPES, Shape, packaged
from webhook.api.mpijob import API_VERSION, IMPLEMENTATIONS, OLDER_VERSIONS
from webhook.api.quantity import QuantityError, parse
from webhook.converters.report import ConversionError, Report
from webhook.parts.older_versions import older_jobs
from webhook.parts.older_versions.limits import MAX_ANNOTATIONS_BYTES, MAX_DEPTH, MIN_OTHER_ANNOTATIONS_BYTES
from webhook.parts.older_versions.replica_specs import NEW_FIELDS, Options

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
"""Fields of a version's spec that v2beta1 lacks. `template` of v1alpha1 is left out."""
# The only field that may be a number or a text but is not a quantity.
_PORT: Final = "port"
_MAX_INT32: Final = 2**31 - 1


class Fault(NamedTuple):
    """A reason why clients of a version cannot decode a spec."""

    path: str
    text: str
    of_type: bool
    """Whether the API server would reject the value by the schema."""


@cache
def _of_version(version: str) -> Shape:
    spec = packaged().root.fields["spec"]
    common = {key: spec.fields[key] for key in ("slotsPerWorker", "runPolicy", "mpiReplicaSpecs")}
    roles = common["mpiReplicaSpecs"].values
    template = {"template": roles.fields["template"]} if roles and version == OLDER_VERSIONS[-1] else {}
    return Shape("object", fields={**common, **template, **OWN_FIELDS[version]})


def faults(version: str, spec: Any) -> Iterator[Fault]:
    """Reasons why clients cannot decode the spec, and fields that the version does not have."""
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
        if shape.items == _TEXT and all(isinstance(item, str) for item in value):
            return  # fast for a long list
        for number, item in enumerate(value if shape.items else ()):
            yield from _faults(item, shape.items or shape, f"{path}[{number}]", key)
    elif shape.type == "quantity" and key != _PORT and not _is_quantity(value):
        yield Fault(path, "is not a quantity", of_type=False)
    elif (
        isinstance(value, int) and not -_MAX_INT32 <= value <= _MAX_INT32 and (shape.type != "quantity" or key == _PORT)
    ):
        yield Fault(path, "does not fit into 32 bits", of_type=False)


def _of_mapping(value: dict[str, Any], shape: Shape, path: str, key: str) -> Iterator[Fault]:
    if shape.values == _TEXT and all(isinstance(field, str) for field in value.values()):
        return
    for name, field in value.items():
        if shape.values:
            yield from _faults(field, shape.values, f"{path}[{name}]", key)
        elif name in shape.fields:
            yield from _faults(field, shape.fields[name], f"{path}.{name}", name)
        elif shape.fields and field is not None:
            yield Fault(f"{path}.{name}", "is not a field of this version", of_type=False)


def _is_quantity(value: object) -> bool:
    try:
        parse(value)
    except QuantityError:
        return False
    return True


Document = dict[str, Any]
T = TypeVar("T")

WRITTEN_AS: Final = "training.openshift.io/written-as"
SHOWN: Final = "training.openshift.io/shown-from-v2beta1"
DEFAULTS: Final[Document] = {
    "slotsPerWorker": 1,
    "runLauncherAsWorker": False,
    "sshAuthMountPath": "/root/.ssh",
    "launcherCreationPolicy": "AtStartup",
    "mpiImplementation": "OpenMPI",
}
"""Every stored job has these defaults of the CRD."""
NO_JOB: Final[Document] = {**DEFAULTS, "runPolicy": {"suspend": True}, "mpiReplicaSpecs": {}}
"""Replaces a stored spec that cannot be converted: a list must not fail because of one job."""
_ABSENT: Final = object()
# Fields that only older versions have.
_OLDER_FIELDS: Final = {"template", *(key for fields in OWN_FIELDS.values() for key in fields)}


class _Shown(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """The value of SHOWN."""

    spec: Document = {}
    """Fields that only v2beta1 has."""
    as_it_is: bool = False
    """Whether the client got the v2beta1 spec "as it is", without the fields that are in `spec` above."""


class _Written(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """The value of WRITTEN_AS."""

    api_version: str
    spec: Any


_shown = msgspec.json.Decoder(_Shown, float_hook=untyped.number)
_written = msgspec.json.Decoder(_Written, float_hook=untyped.number)


def convert(document: Document, version: str, *, too_large: str = "") -> Document:
    """Returns the object in `version`; ConversionError if it cannot be converted.

    `too_large` is the reason why the object is too large, or empty. The spec of a too large object may have undecoded
    values.
    """
    was = document.get("apiVersion")
    for api_version in (was, version):
        if api_version not in (API_VERSION, *OLDER_VERSIONS):
            raise ConversionError("apiVersion", f'"{str(api_version)[:100]}" is not a known version of MPIJob')
    if document.get("kind") != "MPIJob":
        raise ConversionError("kind", "is not MPIJob")
    if was == version:
        return document
    new = document if was == API_VERSION else _from_older(document, too_large)
    return new if version == API_VERSION else _to_older(new, version, too_large)


def _from_older(document: Document, too_large: str) -> Document:
    version, spec, annotations = document["apiVersion"], document.get("spec"), _annotations(document)
    stored = _is_stored(document)
    shown = _decoded(_shown, annotations.pop(SHOWN, None))
    if shown is None or not _readable(shown.spec):
        shown = _Shown()
    written = _written_as(annotations, version)
    new = _of_shown(spec, shown, written)
    if too_large:
        if not new and not stored:
            raise ConversionError("spec", too_large)
        return _document(document, API_VERSION, new or {**NO_JOB, **shown.spec}, annotations)
    for fault in faults(version, None if stored else spec):
        if fault.of_type:  # the conversion may remove the field before the API server checks it
            raise ConversionError(fault.path, fault.text)
    if new is None:
        if shown.as_it_is:
            spec, shown = _without_v2beta1(spec, written), _Shown(shown.spec)
        new = {**_converted(version, spec, stored=stored), **shown.spec}
    if written is not None:
        if _shows(version, new, written, spec, as_it_is=shown.as_it_is):
            return _document(document, API_VERSION, new, annotations)
        del annotations[WRITTEN_AS]
    if not shown.as_it_is and not _shows(version, new, None, spec, as_it_is=False):
        _store(annotations, _Written(version, spec))
    return _document(document, API_VERSION, new, annotations)


def _of_shown(spec: Any, shown: _Shown, written: _Written | None) -> Document | None:
    """The v2beta1 spec of a job that the client got "as it is".

    None for other jobs. Also None if the client has changed fields that only older versions have.
    """
    if not isinstance(spec, dict) or not shown.as_it_is or _own(spec) != _own(written.spec if written else None):
        return None
    return {**{key: value for key, value in spec.items() if key not in _OLDER_FIELDS}, **shown.spec}


def _to_older(document: Document, version: str, too_large: str) -> Document:
    spec, annotations = document.get("spec"), _annotations(document)
    new = spec if isinstance(spec, dict) else {}
    written = _written_as(annotations, version)
    if not too_large and written is not None and _converted(version, written.spec, stored=True) == new:
        del annotations[WRITTEN_AS]
        return _document(document, version, written.spec, annotations)
    older, shown = _as_it_is(new, written) if too_large else _older(version, new, written)
    if shown != _Shown():
        annotations[SHOWN] = msgspec.json.encode(shown).decode()
    return _document(document, version, older, annotations)


def _older(version: str, new: Document, written: _Written | None) -> tuple[Any, _Shown]:
    """An older spec that converts to the job, and the value of SHOWN."""
    bases = [new]
    if written is not None:
        bases.insert(0, _merged(written.spec, _converted(version, written.spec, stored=True), new))
    for base in bases:
        older = _without_new(base) if isinstance(base, dict) else {}
        try:
            again = _converted(version, older, stored=False)
        except ConversionError:
            continue
        added: Document = {key: new[key] for key in NEW_FIELDS if key in new and again.get(key) != new[key]}
        if {**again, **added} == new:
            return older, _Shown(added)
    return _as_it_is(new, written)


def _as_it_is(new: Document, written: _Written | None) -> tuple[Document, _Shown]:
    added: Document = {key: new[key] for key in NEW_FIELDS if key in new}
    return {**_own(written.spec if written else None), **_without_new(new)}, _Shown(added, as_it_is=True)


def _without_new(spec: Document) -> Document:
    return {key: value for key, value in spec.items() if key not in NEW_FIELDS}


def _shows(version: str, new: Document, written: _Written | None, spec: Any, *, as_it_is: bool) -> bool:
    """Whether a client of `version` would get the older spec `spec` for the v2beta1 spec `new`."""
    if written is None and spec != _without_new(new):
        return False  # saves a conversion: the client would get a different spec
    older, shown = _older(version, new, written)
    return older == spec and shown.as_it_is == as_it_is


def _own(spec: Any) -> Document:
    return {key: _plain(value) for key, value in spec.items() if key in _OLDER_FIELDS} if isinstance(spec, dict) else {}


def _plain(value: Any) -> Any:
    """The decoded value. A value too large for an annotation stays undecoded, because no annotation can contain it."""
    if isinstance(value, msgspec.Raw) and len(memoryview(value)) <= MAX_ANNOTATIONS_BYTES:
        return untyped.decode(value)
    return value


def _without_v2beta1(spec: Any, written: _Written | None) -> Any:
    """Removes the v2beta1 fields that a client of v1alpha1 got in a spec "as it is"."""
    if not isinstance(spec, dict) or "template" not in spec:
        return spec
    added = {"runPolicy", "mpiReplicaSpecs"}
    if written is not None and isinstance(written.spec, dict) and "slotsPerWorker" not in written.spec:
        added.add("slotsPerWorker")
    return {key: value for key, value in spec.items() if key not in added}


def _written_as(annotations: dict[str, str], version: str) -> _Written | None:
    written = _decoded(_written, annotations.get(WRITTEN_AS))
    if written is None or written.api_version != version or any(faults(version, written.spec)):
        return None
    return written


def _converted(version: str, spec: Any, *, stored: bool) -> Document:
    """The spec in v2beta1 with the CRD's defaults. NO_JOB replaces a stored spec that cannot be converted."""
    try:
        new = {**DEFAULTS, **older_jobs.convert_spec(version, spec, Options(), Report())}
    except ConversionError:
        if stored:
            return NO_JOB
        raise
    if "runPolicy" in new:
        new["runPolicy"] = {"suspend": False, **new["runPolicy"]}
    return new


def _is_stored(document: Document) -> bool:
    """Whether the API server has read the object from etcd. Such an object has a uid and no resourceVersion."""
    metadata = document["metadata"]
    return bool(metadata.get("uid")) and not metadata.get("resourceVersion")


def _readable(added: Document) -> bool:
    return all(
        key in NEW_FIELDS
        and isinstance(value, bool if key == "runLauncherAsWorker" else str)
        and (key != "mpiImplementation" or value in IMPLEMENTATIONS)
        for key, value in added.items()
    )


def _annotations(document: Document) -> dict[str, str]:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise ConversionError("metadata", "is not set")
    annotations = metadata.get("annotations")
    return dict(annotations) if isinstance(annotations, dict) else {}


def _store(annotations: dict[str, str], written: _Written) -> None:
    """Stores the original spec if there is room: the API server rejects updates of jobs with too large annotations."""
    annotations.pop(WRITTEN_AS, None)
    value = msgspec.json.encode(written).decode()
    others = sum(len(f"{key}{text}".encode()) for key, text in annotations.items())
    if others + len(WRITTEN_AS) + len(value.encode()) <= MAX_ANNOTATIONS_BYTES - MIN_OTHER_ANNOTATIONS_BYTES:
        annotations[WRITTEN_AS] = value


def _decoded(decoder: msgspec.json.Decoder[T], text: object) -> T | None:
    """The annotation's value; None if it is absent, invalid or too large."""
    if not isinstance(text, str) or len(text) > MAX_ANNOTATIONS_BYTES:
        return None
    try:
        return None if _is_deep(untyped.decode(text)) else decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_deep(value: Any, levels: int = MAX_DEPTH) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not levels or any(_is_deep(item, levels - 1) for item in items)


def _document(document: Document, version: str, spec: Any, annotations: dict[str, str]) -> Document:
    metadata = {**document["metadata"], "annotations": annotations}
    if not annotations:
        del metadata["annotations"]
    new = {**document, "apiVersion": version, "metadata": metadata, "spec": spec}
    if spec is None:
        del new["spec"]
    return new


def _merged(target: Any, before: Any, after: Any) -> Any:
    """`target` with the changes from `before` to `after`. If all three differ, `after` is used."""
    if before == after:
        return target
    if target == before:
        return after
    if isinstance(target, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _of_members(target, before, after)
    named = [items for value in (target, before, after) if (items := _by_name(value)) is not None]
    return _of_named(*named) if len(named) == 3 else after


def _of_members(target: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    merged = {
        key: _merged(target.get(key, _ABSENT), before.get(key, _ABSENT), after.get(key, _ABSENT))
        for key in dict.fromkeys((*target, *after))
    }
    return {key: value for key, value in merged.items() if value is not _ABSENT}


def _of_named(target: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> list[Any]:
    """Merges lists of named items. The order is `target`'s unless `after` changed the order."""
    merged = _of_members(target, before, after)
    first = target if [*before] == [*after] else after
    return [merged[name] for name in dict.fromkeys((*first, *merged)) if name in merged]


def _by_name(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    names = [item.get("name") for item in value]
    if not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        return None
    return dict(zip(names, value, strict=True))
