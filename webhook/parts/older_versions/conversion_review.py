"""ConversionReviews. The API server sends one to get objects in a different version.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion
"""

from typing import Any, Final

import msgspec

from webhook.api import untyped
from webhook.api.limits import MAX_UID_CHARACTERS
from webhook.api.review import ReviewError

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"


class ConversionRequest(msgspec.Struct, gc=False):
    """`objects` are undecoded: decoded objects take 20 times as much memory."""

    uid: str
    desired: str = msgspec.field(name="desiredAPIVersion")
    objects: list[msgspec.Raw]


class _Review(msgspec.Struct, rename="camel", gc=False):
    api_version: str
    kind: str
    request: ConversionRequest


class _Result(msgspec.Struct, omit_defaults=True, gc=False):
    status: str
    message: str = ""


class _Response(msgspec.Struct, rename="camel", gc=False):
    uid: str
    converted_objects: list[msgspec.Raw]
    result: _Result


class _Reply(msgspec.Struct, rename="camel", gc=False):
    response: _Response
    api_version: str = API_VERSION
    kind: str = KIND


_review = msgspec.json.Decoder(_Review)
_object = msgspec.json.Decoder(dict[str, Any], float_hook=untyped.number)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_annotations = msgspec.json.Decoder(dict[str, str] | None)
_string = msgspec.json.Decoder(str)
_NOTHING: Final = msgspec.Raw(b"null")
_encoder = msgspec.json.Encoder()


def decode(body: bytes) -> ConversionRequest:
    """Returns the request; ReviewError if `body` is not a ConversionReview."""
    try:
        review = _review.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReviewError(f"not a ConversionReview: {error}") from None
    if review.api_version != API_VERSION or review.kind != KIND:
        got = f"{review.api_version} {review.kind}"
        raise ReviewError(f"expected {API_VERSION} {KIND}, got {got[:100]}", uid=review.request.uid)
    if not review.request.uid or len(review.request.uid) > MAX_UID_CHARACTERS:
        raise ReviewError(f"request.uid is empty, or has more than {MAX_UID_CHARACTERS} characters")
    return review.request


def document(encoded: msgspec.Raw) -> dict[str, Any]:
    """Decodes the object; ReviewError if `encoded` is not an object."""
    try:
        return _object.decode(encoded)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReviewError(f"not a ConversionReview: in an object: {error}") from None


def opened(encoded: msgspec.Raw) -> dict[str, Any]:
    """The object with undecoded values in its spec. This takes little time for an object of any size."""
    try:
        fields: dict[str, Any] = dict(_members.decode(encoded))
        for key in ("apiVersion", "kind"):
            fields[key] = _text(fields.get(key))
        if "spec" in fields:
            fields["spec"] = _opened(fields["spec"])
        if isinstance(metadata := _opened(fields.get("metadata", _NOTHING)), dict):
            fields["metadata"] = {key: _text(value) for key, value in metadata.items()}
            if "annotations" in metadata:
                fields["metadata"]["annotations"] = _annotations.decode(metadata["annotations"])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReviewError(f"not a ConversionReview: in an object: {error}") from None
    return fields


def _opened(value: msgspec.Raw) -> Any:
    """Decodes the keys of a mapping. Other values stay undecoded."""
    return _members.decode(value) if bytes(value)[:1] == b"{" else value


def _text(value: Any) -> Any:
    """Decodes a text. Other values stay undecoded."""
    return _string.decode(value) if isinstance(value, msgspec.Raw) and bytes(value)[:1] == b'"' else value


def raw(document: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(_encoder.encode(document))


def encode(uid: str, objects: list[msgspec.Raw]) -> bytes:
    return _encoder.encode(_Reply(_Response(uid, objects, _Result("Success"))))


def encode_failure(uid: str, message: str) -> bytes:
    """The API server shows `message` to the client."""
    return _encoder.encode(_Reply(_Response(uid, [], _Result("Failure", message))))
