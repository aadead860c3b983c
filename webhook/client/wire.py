"""The API server's messages for a list and a watch, and how either can fail.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes describes the protocol.
"""

import traceback
from contextlib import suppress
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

D = TypeVar("D")
Item = TypeVar("Item")


class FaultReason(StrEnum):
    """Why a list or a watch ended; the values are metric labels."""

    ENDED = "ended"  # by the server, in good order
    STALLED = "stalled"  # no answer, or no bytes for too long
    EXPIRED = "expired"  # the resource version is gone (410)
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"  # the kind is not installed
    THROTTLED = "throttled"
    REJECTED = "rejected"  # any other status below 500
    SERVER_ERROR = "server-error"
    UNREACHABLE = "unreachable"  # no connection at all
    CUT = "cut"  # the connection broke
    TOO_LARGE = "too-large"  # an answer beyond the limit
    GARBAGE = "garbage"  # nothing that an API server sends
    INTERNAL = "internal"  # a bug of this program


_BY_STATUS = {
    401: FaultReason.UNAUTHORIZED,
    403: FaultReason.FORBIDDEN,
    404: FaultReason.NOT_FOUND,
    410: FaultReason.EXPIRED,
    429: FaultReason.THROTTLED,
}


class WatchFault(Exception):
    """A list or a watch has ended. The server wants no other for `retry_after` seconds."""

    def __init__(self, reason: FaultReason, message: str = "", *, retry_after: float = 0) -> None:
        super().__init__(f"{reason}: {message}" if message else str(reason))
        self.reason = reason
        self.retry_after = retry_after


class Metadata(msgspec.Struct, rename="camel"):
    """Metadata of any object; `namespace` is empty for cluster-scoped ones, `name` for bookmarks."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class Object(msgspec.Struct):
    """Any object."""

    metadata: Metadata


class PageMetadata(msgspec.Struct, rename={"resource_version": "resourceVersion", "token": "continue"}):
    """Where a watch can start, and the token for the next page, empty on the last one."""

    resource_version: str = ""
    token: str = ""


class Page(msgspec.Struct, Generic[Item]):
    """One page of a list."""

    metadata: PageMetadata
    items: list[Item] | None = None


class Event(msgspec.Struct):
    """One line of a watch: ADDED, MODIFIED, DELETED and BOOKMARK with an object, ERROR with a Status."""

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
    """`data` decoded; WatchFault if it has another form."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WatchFault(FaultReason.GARBAGE, type(error).__name__) from None


def refusal(data: bytes | msgspec.Raw, *, code: int = 0, retry_after: float = 0) -> WatchFault:
    """The fault that a JSON `Status` describes. An HTTP reply's `code` overrides its own; the longer wait counts."""
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
    """The type of an error and where it was raised, without its text, which may quote an object."""
    while isinstance(error, ExceptionGroup):  # the group itself is raised elsewhere
        error = error.exceptions[0]
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
