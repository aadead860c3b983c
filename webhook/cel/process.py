"""The worker as a process: started, asked, ended."""

import os
import signal
import socket
import subprocess
import sys
from typing import Final

from webhook.cel.frames import LENGTH, MEMORY, SECONDS

START_SECONDS: Final = 30.0
"""A machine that is very busy starts processes slowly."""
SILENCE_SECONDS: Final = 5.0
"""Beyond what expressions may take: then it was stopped, or the machine stands still."""
# What Python needs to start; nothing else of the environment is the worker's business.
_HANDED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")

# Where no more memory is to be had, for the heap and for the stack.
_OUT_OF_MEMORY: Final = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)


class CannotStart(Exception):
    """There is no worker, through no fault of an expression."""


class WorkerEnded(Exception):
    """It ended over a question."""


class Worker:
    """A running worker."""

    def __init__(self) -> None:
        """Start it; CannotStart when that fails."""
        environment = {
            name: value for name, value in os.environ.items() if name in _HANDED_ON or name.startswith("PYTHON")
        }
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "webhook.cel.worker"],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.DEVNULL,
                    env=environment,
                )
        except OSError as error:
            ours.close()
            raise CannotStart(str(error)) from None
        self._socket = ours
        try:
            self._socket.settimeout(START_SECONDS)
            self._receive()
        except (OSError, EOFError):
            self.end()
            raise CannotStart(f"the process ended with {self._process.returncode}") from None

    @property
    def alive(self) -> bool:
        """Whether it can be asked: something else may have ended it."""
        return self._process.poll() is None

    def ask(self, question: bytes, seconds: float = SILENCE_SECONDS) -> bytes:
        """The answer; WorkerEnded when there is none in time, and then there is no worker any more."""
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(LENGTH.pack(len(question)) + question)
            return self._receive()
        except (OSError, EOFError) as error:
            silent = seconds if isinstance(error, TimeoutError) else None
            self.end()
            raise WorkerEnded(_why(self._process.returncode, silent=silent)) from None

    def end(self) -> None:
        """End it now."""
        self._socket.close()
        if self._process.poll() is None:
            try:
                self._process.wait(timeout=0.1)  # it was ending: then it says why
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _receive(self) -> bytes:
        return self._read(LENGTH.unpack(self._read(LENGTH.size))[0])

    def _read(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            if not (part := self._socket.recv(size - len(found))):
                raise EOFError
            found += part
        return bytes(found)


def _why(code: int, *, silent: float | None) -> str:
    if silent is not None:
        return f"no value within {silent:.3g} s"
    if code == -signal.SIGPROF:
        return f"it takes more than {SECONDS:g} s of processor time"
    if code < 0 and -code not in _OUT_OF_MEMORY:
        return f"what evaluates it was ended by {signal.Signals(-code).name}"
    return f"it takes more than {MEMORY >> 20} MiB of memory"
