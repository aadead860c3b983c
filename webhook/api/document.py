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
