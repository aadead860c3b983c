"""The messages of the API server for lists and watches, and the faults.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import traceback
from contextlib import suppress
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

D = TypeVar("D")
Item = TypeVar("Item")


class FaultReason(StrEnum):
    """The reason why a list or a watch ended. Metrics have the values as labels."""

    ENDED = "ended"  # regular end of a watch
    STALLED = "stalled"  # no answer or no bytes for too long
    EXPIRED = "expired"  # the resource version is gone (410)
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"  # the kind is not installed
    THROTTLED = "throttled"
    REJECTED = "rejected"  # any other status below 500
    SERVER_ERROR = "server-error"
    UNREACHABLE = "unreachable"  # no connection
    CUT = "cut"  # the connection broke
    TOO_LARGE = "too-large"
    GARBAGE = "garbage"  # not an answer of an API server
    INTERNAL = "internal"  # a bug of this program


_BY_STATUS = {
    401: FaultReason.UNAUTHORIZED,
    403: FaultReason.FORBIDDEN,
    404: FaultReason.NOT_FOUND,
    410: FaultReason.EXPIRED,
    429: FaultReason.THROTTLED,
}


class WatchFault(Exception):
    """A list or a watch has ended. The API server requests a pause of `retry_after` seconds."""

    def __init__(self, reason: FaultReason, message: str = "", *, retry_after: float = 0) -> None:
        super().__init__(f"{reason}: {message}" if message else str(reason))
        self.reason = reason
        self.retry_after = retry_after


class Metadata(msgspec.Struct, rename="camel"):
    """The metadata of an object. A bookmark has only `resource_version`."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class Object(msgspec.Struct):
    """A Kubernetes object, with only its metadata."""

    metadata: Metadata


class PageMetadata(msgspec.Struct, rename={"resource_version": "resourceVersion", "token": "continue"}):
    """The metadata of a page."""

    resource_version: str = ""
    """The version from which a watch can continue."""
    token: str = ""
    """The token for the next page; empty on the last page."""


class Page(msgspec.Struct, Generic[Item]):
    """A page of a list."""

    metadata: PageMetadata
    items: list[Item] | None = None


class Event(msgspec.Struct):
    """A line of a watch: ADDED, MODIFIED, DELETED and BOOKMARK with an object, or ERROR with a Status."""

    type: str
    object: msgspec.Raw


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""
    details: _Details | None = None


objects = msgspec.json.Decoder(Object)
pages = msgspec.json.Decoder(Page[msgspec.Raw])
events = msgspec.json.Decoder(Event)


def decode(decoder: msgspec.json.Decoder[D], data: bytes | msgspec.Raw) -> D:
    """Decode `data`; WatchFault if the decoder does not accept `data`."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WatchFault(FaultReason.GARBAGE, type(error).__name__) from None


def status_fault(data: bytes | msgspec.Raw, *, code: int = 0, retry_after: float = 0) -> WatchFault:
    """The fault for a Kubernetes Status in JSON. `code` and `retry_after` are from the HTTP answer."""
    status = _Status()
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        status = msgspec.json.decode(data, type=_Status)
    code = code or status.code
    reason = _BY_STATUS.get(code, FaultReason.REJECTED if 0 < code < 500 else FaultReason.SERVER_ERROR)
    if status.details is not None:
        retry_after = max(retry_after, status.details.retry_after_seconds)
    message = " ".join(status.message.split())[:256]
    return WatchFault(reason, message or f"HTTP {code}", retry_after=retry_after)


def place(error: Exception) -> str:
    """The type and the place of an error, for logs. The error's text may quote an object and is left out."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
