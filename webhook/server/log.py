"""JSON log lines on standard error, one for each event. None has the text of an exception: it may quote an object."""

import logging
import traceback
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from webhook.server.limits import MAX_LOGGED_CHARACTERS, MAX_LOGGED_FRAMES

_encoder = msgspec.json.Encoder()


def make_log(stream: Any, level: str = "info") -> Any:
    """A logger that writes one JSON object per line to `stream`, which has `write` and `flush`.

    `level` is debug, info, warning or error.
    """
    return structlog.wrap_logger(
        structlog.BytesLogger(stream),
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
        text = record.getMessage().partition("\n")[0]  # asyncio puts the exception's text on the next line
        self._log.log(record.levelno, "library", logger=record.name, message=text[:MAX_LOGGED_CHARACTERS], **fields)


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
    return _encoder.encode({"time": datetime.now(UTC), "level": method, "event": fields.pop("event"), **fields})
