"""Progress on stderr: lines at the start and the end of each step, and every half minute."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

QUIET_SECONDS = 30


class Step:
    def __init__(self, label: str, progress: "Progress") -> None:
        self._label = label
        self._progress = progress
        self._start = self._shown = time.monotonic()

    def update(self, detail: str) -> None:
        now = time.monotonic()
        if now - self._shown >= QUIET_SECONDS:
            self._shown = now
            self.say(f"still running after {{}}  {detail}")

    def say(self, text: str) -> None:
        """Print a line in which `{}` is the elapsed time."""
        seconds = int(time.monotonic() - self._start)
        self._progress.say(f"{self._label}: {text.format(f'{seconds // 60}:{seconds % 60:02}')}")


class Progress:
    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def say(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()

    @contextmanager
    def step(self, label: str) -> Iterator[Step]:
        """A step that fails if the block raises an exception."""
        self.say(f"{label} ...")
        step = Step(label, self)
        try:
            yield step
        except BaseException:
            step.say("failed after {}")
            raise
        step.say("done after {}")
