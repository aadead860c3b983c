"""An MPIJob as the JSON object that it is, to be written into, beside the job that is read: both of one text."""

from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from webhook.api import mpijob
from webhook.api.mpijob import MPIJob


class _Metadata(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    """Of an object that is stored, or is about to be. Half of the text are `managedFields`, which nobody reads."""

    name: Any = UNSET
    generate_name: Any = UNSET
    namespace: Any = UNSET
    self_link: Any = UNSET
    uid: Any = UNSET
    resource_version: Any = UNSET
    generation: Any = UNSET
    creation_timestamp: Any = UNSET
    deletion_timestamp: Any = UNSET
    deletion_grace_period_seconds: Any = UNSET
    labels: Any = UNSET
    annotations: Any = UNSET
    owner_references: Any = UNSET
    finalizers: Any = UNSET
    managed_fields: Raw | UnsetType = UNSET


_ANEW: Final = frozenset({"managed_fields", "uid", "creation_timestamp"})


class _Document(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    api_version: Any = UNSET
    kind: Any = UNSET
    metadata: _Metadata | UnsetType = UNSET
    spec: Any = UNSET
    status: Raw | UnsetType = UNSET


def _in_texts(kind: type[msgspec.Struct], **other: type) -> type[msgspec.Struct]:
    """`kind` with its fields as they stand in the JSON, but for `other` types."""
    fields = [
        (each.name, other.get(each.name, Raw), msgspec.field(default=Raw(), name=each.encode_name))
        for each in structs.fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, fields, forbid_unknown_fields=True, gc=False)


_usual = msgspec.json.Decoder(_Document)
_texts = msgspec.json.Decoder(_in_texts(_Document, metadata=_in_texts(_Metadata, uid=str)))
_described = attrgetter(*(name for name in _Metadata.__struct_fields__ if name not in _ANEW))
_parts = msgspec.json.Decoder(dict[str, Raw])
_metadata = msgspec.json.Decoder(dict[str, Raw] | None)


def decode(data: bytes | Raw) -> tuple[MPIJob, dict[str, Any]]:
    """The job in JSON `data`, and the object without its `managedFields`.

    ShapeError with the path of the first field of a wrong type; DecodeError where only what nobody reads is faulty.
    """
    try:
        return _decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return mpijob.decode(data), object_of(data)  # these have the words


def texts(data: bytes | Raw) -> tuple[bytes, ...]:
    """The JSON of each field of an object and of its metadata, but for what the API server gives each object anew:
    `managedFields`, `uid` and `creationTimestamp`.

    DecodeError for one that has others, or no metadata, or a uid that is no text.
    """
    api_version, kind, metadata, spec, status = structs.astuple(_texts.decode(data))
    if isinstance(metadata, Raw):
        raise msgspec.DecodeError("no metadata")
    return tuple(map(bytes, (api_version, kind, *_described(metadata), spec, status)))


def _decode(data: bytes | Raw) -> tuple[MPIJob, dict[str, Any]]:
    document = _fields(_usual.decode(data))
    if "metadata" in document:
        document["metadata"] = _fields(document["metadata"])
        document["metadata"].pop("managedFields", None)
    status = document.pop("status", None)
    job = msgspec.convert(document, MPIJob)
    if status is not None:
        job.raw_status, document["status"] = status, msgspec.json.decode(status)
    return job, document


def object_of(data: bytes | Raw) -> dict[str, Any]:
    """The JSON object `data` as it is, but for `metadata.managedFields`.

    DecodeError where it is no object, or its metadata is none.
    """
    decode = msgspec.json.decode
    document: dict[str, Any] = {}
    for key, part in _parts.decode(data).items():
        if key == "metadata" and (fields := _metadata.decode(part)) is not None:
            document[key] = {name: decode(raw) for name, raw in fields.items() if name != "managedFields"}
        else:
            document[key] = decode(part)
    return document


def _fields(parsed: msgspec.Struct) -> dict[str, Any]:
    """What was written, by the names of the JSON."""
    pairs = zip(parsed.__struct_encode_fields__, structs.astuple(parsed), strict=True)
    return {name: value for name, value in pairs if value is not UNSET}
