"""Writes log lines in a thread of its own: a pipe that nobody reads would otherwise stop all reviews."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import msgspec

from webhook.server.limits import MAX_WAITING_LINES

PAUSE_SECONDS: Final = 0.02
"""Between two writes: one for the lines of several reviews is cheaper."""
DRAIN_SECONDS: Final = 2.0
"""For the last lines, where the pipe is not read."""


class LogWriter:
    """Lines for a file descriptor. Call `drain` at the end of the process.

    Python's own buffered files have a lock: a thread that is stuck in a write would hold it at the end of the process.
    """

    def __init__(self, descriptor: int) -> None:
        self.on_drop: Callable[[], object] = lambda: None
        """Called for each line that is never written, because too many waited."""
        self._dropped = 0
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._writing = False
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def write(self, line: bytes) -> None:
        """Take a line."""
        with self._changed:
            if len(self._lines) >= MAX_WAITING_LINES:
                self._lines.popleft()
                self._dropped += 1
                self.on_drop()
            self._lines.append(line)

    def flush(self) -> None:
        """Have the lines written soon."""
        with self._changed:
            self._changed.notify_all()

    def drain(self) -> None:
        """Wait until all is written, at most `DRAIN_SECONDS`."""
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
