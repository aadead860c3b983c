"""Programs that write logs and never outlive this process, and functions that wait by polling."""

import atexit
import itertools
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

# These ports are below the ports of outgoing connections, which start at 32768 on Linux.
BLOCK = 128
BLOCKS = range(20000, 32768 - BLOCK, BLOCK)
# Seconds: enough for a busy machine.
PATIENCE = 90
GUARD = Path(__file__).with_name("guard.py")
T = TypeVar("T")


class ControlPlaneError(RuntimeError):
    """A part of the control plane could not be built, started or reached. The text has the part's name and log."""


class _Ended(Exception):
    pass


def guarded(command: Sequence[str | Path]) -> list[str]:
    """`command` with a wrapper, so that the kernel kills the command when this process ends (see guard.py)."""
    return [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), *map(str, command)]


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """In this block, SIGTERM raises KeyboardInterrupt, so that all resources are closed.

    If SIGTERM already has a handler, nothing changes.
    """
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def ends_in_words() -> Iterator[None]:
    """A ControlPlaneError or a signal in this block ends the process without a traceback."""
    try:
        with sigterm_interrupts():
            yield
    except ControlPlaneError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")


def free_port() -> int:
    """A free TCP port that no other process of the tests uses."""
    for port in itertools.islice(_ports(), BLOCK):
        with suppress(OSError):
            _bound(port).close()
            return port
    raise ControlPlaneError(f"none of the {BLOCK} ports of this process is free on 127.0.0.1")


@cache
def _ports() -> Iterator[int]:
    """The ports of this process, in a cycle. A port is reused late, because the program that used it may restart.

    A process owns a block of ports while it keeps the first port of the block open.
    """
    for first in random.sample(BLOCKS, len(BLOCKS)):
        with suppress(OSError):
            atexit.register(_bound(first).close)
            return itertools.cycle(range(first + 1, first + BLOCK))
    raise ControlPlaneError(f"no free TCP ports between {BLOCKS.start} and {BLOCKS.stop} on 127.0.0.1")


def _bound(port: int) -> socket.socket:
    probe = socket.socket()
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        probe.close()
        raise
    return probe


def responds(url: str, ca: bytes | None = None) -> bool:
    """Whether a GET of `url` returns 200. Raises OSError if it cannot connect. `ca` is the trusted CA as PEM."""
    context = ssl.create_default_context(cadata=ca.decode()) if ca else None
    direct = urllib.request.ProxyHandler({})  # ignores proxy settings, which do not apply to loopback
    opener = urllib.request.build_opener(direct, urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
        return False


def wait_for(
    what: str,
    probe: Callable[[], T | None],
    *,
    timeout: float = PATIENCE,
    every: float = 0.1,
    detail: Callable[[], str] | None = None,
) -> T:
    """Call `probe` until it returns a true value, and return this value.

    An OSError or ControlPlaneError means "not yet". After `timeout` seconds, raises TimeoutError with `what`, the last
    value or error, and the text of `detail`.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            value = probe()
            if value:
                return value
            seen = f"last seen: {value!r}"
        except (OSError, ControlPlaneError) as error:
            seen = f"last error: {error}"
        if time.monotonic() >= deadline:
            more = f"\n{detail()}" if detail else ""
            raise TimeoutError(f"waited {timeout:g} s for {what}; {seen}{more}")
        time.sleep(every)


class Program:
    def __init__(self, name: str, command: Sequence[str | Path], *, log: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self.log = log
        # A separate session: Ctrl-C reaches only this process, which stops all programs in order.
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                guarded(command), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=env, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def tail(self) -> str:
        """The last lines of the log, after a line with the program's name and state."""
        state = "running" if self.running else f"exit code {self._process.returncode}"
        text = self.log.read_text(errors="replace").splitlines()[-40:]
        return "\n".join([f"--- {self.name} ({state}), {self.log}", *text])

    def wait_ready(self, probe: Callable[[], T | None]) -> T:
        """Wait for `probe`. Raises ControlPlaneError with the end of the log if the program exits or is too slow."""

        def alive() -> T | None:
            if not self.running:
                raise _Ended
            return probe()

        try:
            return wait_for(f"{self.name} to be ready", alive, timeout=60, every=0.05)
        except _Ended:
            raise ControlPlaneError(f"{self.name} ended while starting\n{self.tail()}") from None
        except TimeoutError as error:
            raise ControlPlaneError(f"{error}\n{self.tail()}") from None

    def stop(self, *, grace: float = 0) -> None:
        """Stop the program by SIGKILL. With `grace`, it first gets a SIGTERM, and this number of seconds to exit."""
        if self.running and grace:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        if self.running:
            self._process.kill()
        self._process.wait()
