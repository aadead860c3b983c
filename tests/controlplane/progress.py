"""Progress on stderr: a line for each step, with a running clock on a terminal."""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

QUIET_SECONDS = 30  # seconds between two lines without a terminal, so that CI systems see progress


class Step:
    def __init__(self, label: str, stream: TextIO) -> None:
        self.label = label
        self._stream = stream
        self._terminal = stream.isatty()
        self._start = time.monotonic()
        self._shown = 0.0
        self._outcome = "done"
        if not self._terminal:
            self._write(f"{label} ...\n")

    def update(self, detail: str) -> None:
        """Show the elapsed time and the current detail."""
        seconds = time.monotonic() - self._start
        if self._terminal:
            line = f"{self.label}  {clock(seconds)}  {detail}"
            self._write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
        elif seconds - self._shown >= QUIET_SECONDS:
            self._shown = seconds
            self._write(f"{self.label}: still running after {clock(seconds)}  {detail}\n")

    def failed(self) -> None:
        self._outcome = "failed"

    def close(self) -> None:
        line = f"{self.label}: {self._outcome} after {clock(time.monotonic() - self._start)}\n"
        self._write(f"\r\x1b[K{line}" if self._terminal else line)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Progress:
    """Shows progress on stderr or another stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def say(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()

    @contextmanager
    def step(self, label: str) -> Iterator[Step]:
        """A step that is shown while the block runs. If the block raises, the step is shown as failed."""
        step = Step(label, self._stream)
        try:
            yield step
        except BaseException:
            step.failed()
            raise
        finally:
            step.close()


def clock(seconds: float) -> str:
    """65.2 -> `1:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
