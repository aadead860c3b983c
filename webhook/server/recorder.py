"""A record of real reviews, in files of a bounded size: for `policy replay --recorded`.

It never costs a review: what is decided is handed to a thread of its own, which takes out what may be secret and
writes. Where that thread is behind, a review is too large, or there are more than the rate allows, it is left out and
counted.
"""

import hmac
import os
import queue
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any, Final

import msgspec

from webhook.admission import recorded
from webhook.admission.decision import Decision
from webhook.api.review import AdmissionRequest
from webhook.client import wire

PREFIX: Final = "reviews-"
SUFFIX: Final = ".jsonl"
# The record is so many files: of a full one the oldest part goes.
FILES: Final = 8
# Reviews that wait to be written, and the bytes of the largest: 16 MiB in all.
WAITING: Final = 64
LARGEST: Final = 256 * 1024
# Seconds until a folder that cannot be written to is tried again.
RETRY: Final = 30.0
# Seconds that the end of the service waits for what is to be written.
LAST: Final = 2.0

WRITTEN: Final = "written"
OUTCOMES: Final = (WRITTEN, "rate", "behind", "large", "unwritable")

_encoder: Final = msgspec.json.Encoder()
_END: Final = None
_NO_FILE: Final = -1
_Item = tuple[AdmissionRequest, Decision, dict[str, str] | None, datetime, int]


class Recorder:
    """Writes reviews into `folder`, which has no more than `most_bytes` of them."""

    def __init__(
        self,
        folder: Path,
        *,
        most_bytes: int,
        rate: float,
        log: Any,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.outcomes: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self.problem = ""
        self._folder = folder
        self._most_bytes = most_bytes
        self._rate = rate
        self._log = log
        self._clock = clock
        self._allowed, self._asked = 1.0, clock()
        self._left_out = 0
        self._waiting: queue.Queue[_Item | None] = queue.Queue(WAITING)
        self._key = secrets.token_bytes(32)  # never written: names of users cannot be tried out
        self._file = _NO_FILE
        self._size = 0
        self._number = 0
        self._again = 0.0
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def concerns(self) -> dict[str, str]:
        """What is wrong, for the administrator."""
        return {"record": f"reviews are not recorded: {self.problem}"} if self.problem else {}

    def offer(
        self, request: AdmissionRequest, decision: Decision, labels: dict[str, str] | None, now: datetime
    ) -> None:
        """Record a decision if there is room for it; returns at once."""
        if request.dry_run or decision.skipped:
            return
        reason = self._reason(request)
        if not reason:
            try:
                self._waiting.put_nowait((request, decision, labels, now, self._left_out))
            except queue.Full:
                reason = "behind"
            else:
                self._left_out = 0
                return
        self.outcomes[reason] += 1
        self._left_out += 1

    def _reason(self, request: AdmissionRequest) -> str:
        """Why it is left out; empty where it is not."""
        now = self._clock()
        self._allowed = min(max(self._rate, 1), self._allowed + (now - self._asked) * self._rate)
        self._asked = now
        if self._allowed < 1:
            return "rate"
        if len(memoryview(request.object)) + len(memoryview(request.old_object)) > LARGEST:
            return "large"
        self._allowed -= 1
        return ""

    @contextmanager
    def running(self) -> Iterator["Recorder"]:
        """Write until the block ends, and what waits then."""
        self._thread.start()
        try:
            yield self
        finally:
            try:
                self._waiting.put(_END, timeout=LAST)
                self._thread.join(LAST)
            except queue.Full:
                pass  # the disk hangs; nobody waits for it

    def _run(self) -> None:
        while (item := self._waiting.get()) is not _END:
            self._take(item)
        self._close()

    def _take(self, item: _Item) -> None:
        if self.problem and self._clock() < self._again:
            self.outcomes["unwritable"] += 1
            return
        try:
            self._write(item)
        except OSError as error:
            self._fails(f"{self._folder}: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - the thread goes on, and the log has no text of objects
            self._fails(wire.place(error))
        else:
            self.outcomes[WRITTEN] += 1
            if self.problem:
                self.problem = ""
                self._log.info("reviews are recorded again", folder=str(self._folder))

    def _write(self, item: _Item) -> None:
        request, decision, labels, time, left_out = item
        review = recorded.of(request, decision, time=time, user=self._named(request.user_info.username), labels=labels)
        review.unrecorded = left_out
        line = _encoder.encode(review) + b"\n"
        self._make_room(len(line), time)
        written = os.write(self._file, line)
        self._size += written
        if written < len(line):  # a disk that has just become full: the rest of the line is missing
            self._close()
            raise OSError("no space left on device")

    def _make_room(self, length: int, now: datetime) -> None:
        """Have a file open that takes so many bytes more."""
        part = max(self._most_bytes // FILES, 1)
        if self._file != _NO_FILE and self._size + length <= part:
            return
        self._close()
        found = sorted(self._folder.glob(f"{PREFIX}*{SUFFIX}"))
        sizes = {path: path.stat().st_size for path in found}
        while found and sum(sizes[path] for path in found) + max(part, length) > self._most_bytes:
            found.pop(0).unlink(missing_ok=True)
        self._number += 1
        name = f"{PREFIX}{now:%Y%m%dT%H%M%S.%fZ}-{os.getpid()}-{self._number}{SUFFIX}"
        self._file = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._size = 0

    def _close(self) -> None:
        if self._file != _NO_FILE:
            os.close(self._file)
            self._file = _NO_FILE

    def _fails(self, problem: str) -> None:
        """Told once, until it has worked again."""
        self.outcomes["unwritable"] += 1
        if not self.problem:
            self._log.warning("reviews are not recorded", reason=problem)
        self.problem, self._again = problem, self._clock() + RETRY
        self._close()

    def _named(self, user: str) -> str:
        return f"user-{hmac.digest(self._key, user.encode(), 'sha256').hex()[:12]}" if user else ""
