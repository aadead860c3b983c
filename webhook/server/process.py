"""The process of `mpijob-webhook serve`: the event loop, signals, exit codes."""

import asyncio
import atexit
import ctypes
import gc
import logging
import resource
import signal
import sys
from contextlib import suppress
from functools import partial

import uvloop

from webhook import PROGRAM, work_limit
from webhook.policy.in_force import policy_model
from webhook.server.log import LibraryLog, LogWriter, make_log
from webhook.server.service import ServeSettings, StartError, running
from webhook.server.telemetry import Telemetry

# Thresholds of `gc.set_threshold`. A review waits half a millisecond for a collection of 1,000 objects.
PORTIONS = 1_000, 2, 300
PR_SET_DUMPABLE = 4
TRIM_SECONDS = 10.0
"""Seconds between two returns of freed memory to the system. Each return takes a millisecond or two."""


def run(settings: ServeSettings) -> int:
    """Serve until a signal; returns the exit code.

    0 after a drain, or after a signal before the service was ready; 2 if the service cannot start; 128 + n if a second
    signal n ended it.
    """
    _raise_limit()
    _forbid_core_dumps()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(settings))


async def serve(settings: ServeSettings) -> int:
    """Serve until SIGTERM or SIGINT, then drain. A second signal ends the service at once. Returns the exit code.

    A signal before the service is ready also ends it at once: it may be waiting for its certificate.
    """
    lines = LogWriter(sys.stderr.fileno())
    atexit.register(lines.drain)
    log = make_log(lines, settings.log_level)
    logging.basicConfig(handlers=[LibraryLog(log)], level=logging.WARNING, force=True)
    task = asyncio.current_task()
    stop = asyncio.Event()
    aborted = 0
    ready = False

    def on_signal(number: int) -> None:
        nonlocal aborted
        if stop.is_set():
            aborted = number
        if (stop.is_set() or not ready) and task is not None:
            task.cancel()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    _load_for_good()
    work_limit.arm()
    try:
        telemetry = Telemetry(log)
        lines.on_drop = partial(telemetry.metrics.add, "log_lines_dropped_total")
        async with running(settings, telemetry) as service:
            tasks = [asyncio.create_task(_freeze(service.settled)), asyncio.create_task(_give_memory_back())]
            ready = True
            log.info("ready")
            await stop.wait()
            for background in tasks:
                background.cancel()
            await service.drain()
    except StartError as error:
        lines.write(f"{PROGRAM}: {error}\n".encode(errors="backslashreplace"))
        lines.flush()
        return 2
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
        if not aborted:
            log.info("stopped before it was ready")
            return 0
        log.warning("stopped at once", signal=signal.Signals(aborted).name)
        return 128 + aborted
    log.info("stopped")
    return 0


def _forbid_core_dumps() -> None:
    """Keep private keys out of core files. Linux ignores this limit if core_pattern is a program."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _load_for_good() -> None:
    """Import every rule, and build the policy's model.

    The garbage collector skips these objects from now on: they are needed until the end of the process.
    """
    gc.disable()
    policy_model().model_rebuild()
    gc.freeze()
    gc.enable()


async def _freeze(settled: asyncio.Event) -> None:
    """Exclude long-lived objects from garbage collection once the caches are filled.

    After that the collector runs in short steps, because reviews wait for it.
    """
    await settled.wait()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*PORTIONS)


async def _give_memory_back() -> None:
    """Return freed memory to the system. glibc would keep the memory of 10,000 closed TLS connections.

    https://man7.org/linux/man-pages/man3/malloc_trim.3.html; other C libraries lack `malloc_trim`.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(TRIM_SECONDS)
        trim(0)


__all__ = ["ServeSettings", "StartError", "run", "serve"]


def _raise_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
