"""JSON log lines on standard error, one for each event.

Exception texts are never logged: they may quote objects. A thread writes the lines, because a pipe without a reader
would otherwise stop all reviews. `RefusalLog` logs the first rejected request of each kind and counts further requests,
because a client can cause thousands in a second.
"""

import logging
import os
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final

import msgspec
import structlog

from webhook.server.limits import MAX_LOGGED_CHARACTERS, MAX_LOGGED_FRAMES, MAX_LOGGED_REFUSALS, MAX_WAITING_LINES

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
    """Passes on the records of libraries that use `logging` (aiohttp, asyncio), without exception texts."""

    def __init__(self, log: Any) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        fields = describe(record.exc_info[1]) if record.exc_info and record.exc_info[1] else {}
        text = record.getMessage().partition("\n")[0]  # asyncio puts the exception's text on the next line
        self._log.log(record.levelno, "library", logger=record.name, message=text[:MAX_LOGGED_CHARACTERS], **fields)


def describe(error: BaseException) -> dict[str, Any]:
    """The type and the traceback, without the text of the error, which may quote a user's object."""
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
    """structlog's last processor. JSON escapes line breaks and control characters, so each event stays on one line."""
    return _encoder.encode({"time": datetime.now(UTC), "level": method, "event": fields.pop("event"), **fields})


PAUSE_SECONDS: Final = 0.02
"""Seconds between two writes: one write for several lines is cheaper."""
DRAIN_SECONDS: Final = 2.0
"""Seconds to write the last lines if the pipe has no reader."""


class LogWriter:
    """Writes lines to a file descriptor. Call `drain` at the end of the process.

    Python's own buffered files have a lock: a thread that is stuck in a write would hold it at the end of the process.
    """

    def __init__(self, descriptor: int) -> None:
        self.on_drop: Callable[[], object] = lambda: None
        """Called for each line that is dropped because too many lines wait."""
        self._dropped = 0
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._writing = False
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def write(self, line: bytes) -> None:
        with self._changed:
            if len(self._lines) >= MAX_WAITING_LINES:
                self._lines.popleft()
                self._dropped += 1
                self.on_drop()
            self._lines.append(line)

    def flush(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def drain(self) -> None:
        """Wait until all lines are written, at most `DRAIN_SECONDS`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lines and not self._writing, DRAIN_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines)
                lines = [*self._lines]
                self._lines.clear()
                dropped, self._dropped = self._dropped, 0
                self._writing = True
            self._write(b"".join([_dropped_line(dropped), *lines] if dropped else lines))
            with self._changed:
                self._writing = False
                self._changed.notify_all()
            time.sleep(PAUSE_SECONDS)

    def _write(self, data: bytes) -> None:
        with suppress(OSError):  # a closed pipe
            while data:
                data = data[os.write(self._descriptor, data) :]


def _dropped_line(count: int) -> bytes:
    line = {"time": datetime.now(UTC), "level": "warning", "event": "log lines dropped", "count": count}
    return msgspec.json.encode(line) + b"\n"


SUMMARY_SECONDS: Final = 10.0


class RefusalLog:
    """Logs the first rejection of each kind. After `SUMMARY_SECONDS`, it logs the number of further rejections."""

    def __init__(self, log: Any, clock: Callable[[], float] = monotonic) -> None:
        self._log = log
        self._clock = clock
        self._since = float("-inf")
        self._more: Counter[tuple[str, tuple[tuple[str, Any], ...]]] = Counter()
        """Logged kinds, and the number of later rejections of each kind."""
        self._others = 0
        """The number of rejections of kinds that are not logged."""

    def warning(self, event: str, **fields: Any) -> None:
        if self._clock() - self._since >= SUMMARY_SECONDS:
            self._summarize()
        kind = event, tuple(fields.items())
        if kind in self._more:
            self._more[kind] += 1
        elif len(self._more) < MAX_LOGGED_REFUSALS:
            self._more[kind] = 0
            self._log.warning(event, **fields)
        else:
            self._others += 1

    def _summarize(self) -> None:
        for (event, fields), count in self._more.items():
            if count:
                self._log.warning(f"{event} again", **dict(fields), count=count)
        if self._others:
            self._log.warning("others refused", count=self._others)
        self._since, self._others = self._clock(), 0
        self._more.clear()
