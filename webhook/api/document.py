"""Decodes an MPIJob twice from the same text: as a writable JSON object and as the typed job."""

from typing import Any, Final

import msgspec
from msgspec import Raw

from webhook.api import mpijob, untyped
from webhook.api.mpijob import MPIJob

_parts: Final = msgspec.json.Decoder(dict[str, Raw])
_object: Final = msgspec.json.Decoder(dict[str, Any], float_hook=untyped.number)


def decode(data: bytes | Raw) -> tuple[MPIJob, dict[str, Any]]:
    """The job in JSON `data`, and the object without its `managedFields`.

    ShapeError with the path of the first field that has a wrong type. DecodeError if the fault is in a field that the
    service does not read.
    """
    return mpijob.decode(data), object_of(data)


def object_of(data: bytes | Raw) -> dict[str, Any]:
    """The object without `metadata.managedFields`. DecodeError if `data` is not an object."""
    document = _object.decode(data)
    untyped.mapping(document.get("metadata")).pop("managedFields", None)
    return document


def as_submitted(data: Raw) -> Raw:
    """The object without `managedFields` and status. The API server drops a user's status after the mutating hook."""
    try:
        parts: dict[str, Any] = _parts.decode(data)
        if "metadata" in parts:
            parts["metadata"] = _parts.decode(parts["metadata"])
            parts["metadata"].pop("managedFields", None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return data
    parts.pop("status", None)
    return Raw(msgspec.json.encode(parts))
