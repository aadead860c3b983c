"""Decodes an MPIJob twice from the same text: as a writable JSON object and as the typed job."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from webhook.api import mpijob, untyped
from webhook.api.mpijob import MPIJob


class _Metadata(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    """The metadata of a stored object. `managedFields` is half of the text and is never read, so it is not decoded."""

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


class _Document(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    api_version: Any = UNSET
    kind: Any = UNSET
    metadata: _Metadata | UnsetType = UNSET
    spec: Any = UNSET
    status: Raw | UnsetType = UNSET


_usual = msgspec.json.Decoder(_Document, float_hook=untyped.number)
_parts = msgspec.json.Decoder(dict[str, Raw])
_metadata = msgspec.json.Decoder(dict[str, Raw] | None)


def decode(data: bytes | Raw) -> tuple[MPIJob, dict[str, Any]]:
    """The job in JSON `data`, and the object without its `managedFields`.

    ShapeError with the path of the first field of a wrong type. DecodeError if the fault is in a field that the service
    does not read.
    """
    try:
        return _decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return mpijob.decode(data), object_of(data)  # both functions raise readable errors


def _decode(data: bytes | Raw) -> tuple[MPIJob, dict[str, Any]]:
    document = _fields(_usual.decode(data))
    if "metadata" in document:
        document["metadata"] = _fields(document["metadata"])
        document["metadata"].pop("managedFields", None)
    status = document.pop("status", None)
    job = msgspec.convert(document, MPIJob)
    if status is not None:
        job.raw_status, document["status"] = status, untyped.decode(status)
    return job, document


def object_of(data: bytes | Raw) -> dict[str, Any]:
    """The object without `metadata.managedFields`. DecodeError if `data` or its metadata is not an object."""
    decode = untyped.decode
    document: dict[str, Any] = {}
    for key, part in _parts.decode(data).items():
        if key == "metadata" and (fields := _metadata.decode(part)) is not None:
            document[key] = {name: decode(raw) for name, raw in fields.items() if name != "managedFields"}
        else:
            document[key] = decode(part)
    return document


def without_status(data: Raw) -> Raw:
    """The object without its status. The API server drops a user's status only after the mutating hook."""
    if b'"status"' not in bytes(data):
        return data
    try:
        parts = _parts.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return data
    if parts.pop("status", None) is None:
        return data
    return Raw(msgspec.json.encode(parts))


def _fields(parsed: msgspec.Struct) -> dict[str, Any]:
    pairs = zip(parsed.__struct_encode_fields__, structs.astuple(parsed), strict=True)
    return {name: value for name, value in pairs if value is not UNSET}
