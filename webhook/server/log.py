"""JSON log lines on standard error, one for each event. None has the text of an exception: it may quote an object."""

import logging
import traceback
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, Protocol, cast

import msgspec
import structlog

from webhook.server.limits import MAX_LOGGED_CHARACTERS, MAX_LOGGED_FRAMES

_encoder = msgspec.json.Encoder()


class DecisionLine(msgspec.Struct, kw_only=True, gc=False):
    """The event of one decision, with its fields in this order: a struct, as each review writes one."""

    time: datetime
    level: str = "info"
    event: str = "decision"
    webhook: str
    uid: str
    operation: str
    namespace: str
    name: str
    user: str
    dry_run: bool
    allowed: bool
    denied: list[str]
    warned: list[str]
    audited: list[str]
    exempted: list[str]
    injected: list[str]
    skipped: str
    policy: str
    duration_ms: float


class Lines(Protocol):
    """Where a log writes to: each line is written and flushed."""

    def write(self, line: bytes, /) -> Any:
        """Take a line."""
        ...

    def flush(self) -> Any:
        """Hand on what was taken."""
        ...


def make_log(stream: Lines, level: str = "info") -> Any:
    """A logger that writes one JSON object per line to `stream`; `level` is debug, info, warning or error.

    An event is a text with fields, or a `DecisionLine`.
    """
    return structlog.wrap_logger(
        structlog.BytesLogger(cast("BinaryIO", stream)),
        processors=[_line],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )


class LibraryLog(logging.Handler):
    """Writes the records of libraries that use `logging` (aiohttp, asyncio) to our log, without texts of exceptions."""

    def __init__(self, log: Any) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record` as one line."""
        fields = describe(record.exc_info[1]) if record.exc_info and record.exc_info[1] else {}
        text = record.getMessage().partition("\n")[0][
            :MAX_LOGGED_CHARACTERS
        ]  # asyncio puts the exception's text on the next line
        self._log.log(record.levelno, "library", logger=record.name, message=text, **fields)


def describe(error: BaseException) -> dict[str, Any]:
    """The type of `error` and where it came from, without its text, which may quote a user's object."""
    frames = traceback.extract_tb(error.__traceback__)[-MAX_LOGGED_FRAMES:]
    fields: dict[str, Any] = {
        "error": f"{type(error).__module__}.{type(error).__qualname__}",
        "traceback": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }
    cause = error.__cause__ or error.__context__
    if cause is not None:
        fields["cause"] = f"{type(cause).__module__}.{type(cause).__qualname__}"
    return fields


def _line(_: Any, method: str, fields: MutableMapping[str, Any]) -> bytes:
    """structlog's last processor. JSON escapes line breaks and control characters, so one event stays one line."""
    event = fields.pop("event")
    if isinstance(event, DecisionLine):
        return _encoder.encode(event)
    return _encoder.encode({"time": datetime.now(UTC), "level": method, "event": event, **fields})
