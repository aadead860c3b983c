"""The log: rejected requests cannot flood it, and an unread pipe cannot stop the service."""

import fcntl
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support import jobs
from tests.support.live_service import LOOPBACK, Connection
from tests.support.logs import Log
from webhook.server import log as log_writer
from webhook.server.limits import MAX_LOGGED_REFUSALS
from webhook.server.log import SUMMARY_SECONDS, LogWriter, RefusalLog, make_log
from webhook.server.metrics import PREFIX
from webhook.server.telemetry import Telemetry


class Refusing:
    """A RefusalLog with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log = Log()
        self.telemetry = Telemetry(self.log)
        self.telemetry._refusals = RefusalLog(self.log, lambda: self.now)

    def refuse(self, times: int = 1, reason: str = "bad", peer: str = "192.0.2.1") -> None:
        for _ in range(times):
            self.telemetry.refused(None, HTTPStatus.BAD_REQUEST, reason, peer=peer)


@pytest.fixture
def refusing() -> Refusing:
    return Refusing()


def test_rejected_requests_of_a_kind_are_reported_once_and_then_counted(refusing: Refusing) -> None:
    refusing.refuse(1000)
    refusing.refuse(1, peer="192.0.2.2")
    fields = {"webhook": None, "code": 400, "reason": "bad"}
    assert refusing.log.lines == [("warning", "refused", {**fields, "peer": f"192.0.2.{peer}"}) for peer in (1, 2)]
    refusing.now += SUMMARY_SECONDS
    refusing.refuse()
    again, refused = refusing.log.lines[2:]
    assert again == ("warning", "refused again", {**fields, "peer": "192.0.2.1", "count": 999})
    assert refused == refusing.log.lines[0]
    counted = refusing.telemetry.registry.get_sample_value(PREFIX + "bad_requests_total", {"code": "400"})
    assert counted == 1002


def test_rejected_requests_of_many_kinds_are_counted_together(refusing: Refusing) -> None:
    for number in range(MAX_LOGGED_REFUSALS + 5):
        refusing.refuse(2, f"reason {number}")
    assert len(refusing.log.lines) == MAX_LOGGED_REFUSALS
    refusing.now += SUMMARY_SECONDS
    refusing.refuse()
    assert refusing.log.events("others refused") == [{"count": 10}]
    assert [again["count"] for again in refusing.log.events("refused again")] == [1] * MAX_LOGGED_REFUSALS
    assert refusing.log.told[-1] == "refused"


def test_every_rare_rejected_request_is_reported(refusing: Refusing) -> None:
    for _ in range(3):
        refusing.refuse()
        refusing.now += SUMMARY_SECONDS
    assert refusing.log.told == ["refused"] * 3


PIPE_SIZE = 64 * 1024
SMALL_PIPE = 4096


class Pipe:
    """A pipe. `lines` returns all written lines."""

    def __init__(self) -> None:
        self.output, self.input = os.pipe()

    def lines(self) -> list[dict[str, object]]:
        os.close(self.input)
        with os.fdopen(self.output, "rb") as output:
            return [json.loads(line) for line in output]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    for descriptor in (made.output, made.input):
        with suppress(OSError):
            os.close(descriptor)


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_log_drops_lines_below_its_level(level: str) -> None:
    for own, lines in (("debug", 1), ("error", int(level == "error"))):
        stream = io.BytesIO()
        getattr(make_log(stream, own), level)("started", port=1)
        written = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert [(line["level"], line["event"], line["port"]) for line in written] == [(level, "started", 1)] * lines


def test_lines_of_several_threads_are_complete(pipe: Pipe) -> None:
    writer = LogWriter(pipe.input)
    log = make_log(writer)
    threads = [threading.Thread(target=lambda: [log.info("x" * 9) for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.drain()
    assert [line["event"] for line in pipe.lines()] == ["x" * 9] * 400


def test_unread_log_drops_and_counts_the_oldest_lines(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "MAX_WAITING_LINES", 10)
    monkeypatch.setattr(log_writer, "DRAIN_SECONDS", 30)
    writer = LogWriter(pipe.input)
    counted: list[int] = []
    writer.on_drop = lambda: counted.append(1)
    log = make_log(writer)
    log.info("x" * 2 * PIPE_SIZE)
    os.read(pipe.output, 1)  # the thread is blocked in a write
    for number in range(25):
        log.info(str(number))
    assert len(counted) == 15
    drained = threading.Thread(target=lambda: (writer.drain(), os.close(pipe.input)))
    drained.start()
    with os.fdopen(pipe.output, "rb") as output:
        _, dropped, *rest = output
    drained.join()
    assert json.loads(dropped)["count"] == 15
    assert [json.loads(line)["event"] for line in rest] == [str(number) for number in range(15, 25)]


def test_closed_pipe_does_not_stop_the_writer(pipe: Pipe) -> None:
    writer = LogWriter(pipe.input)
    os.close(pipe.output)
    log = make_log(writer)
    for _ in range(2):
        log.info("lost")
        writer.drain()
    assert not writer._lines


@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "raise KeyError", "loop.stop()"])
def test_ending_process_writes_all_lines(end: str) -> None:
    program = f"""
import asyncio, atexit, sys
from webhook.server.log import make_log
from webhook.server.log import LogWriter
lines = LogWriter(sys.stderr.fileno())
atexit.register(lines.drain)
async def main():
    loop = asyncio.get_running_loop()
    make_log(lines).info("the last line")
    {end}
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert b"the last line" in done.stderr


def test_start_failure_is_the_last_line_of_the_log() -> None:
    program = """
import sys, time
from contextlib import asynccontextmanager
from webhook.server import process
from webhook.server import log

@asynccontextmanager
async def running(settings, telemetry):
    telemetry.log.warning("watch failed")
    time.sleep(0.1)  # the thread writes this line, then pauses
    telemetry.log.warning("watch failed")
    raise process.StartError("no right to register")
    yield

log.PAUSE_SECONDS = 0.3
process.running = running
sys.exit(process.run(process.ServeSettings(listen=("127.0.0.1", 0), ops_listen=("127.0.0.1", 0))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    *lines, last = done.stderr.splitlines()
    assert (done.returncode, last) == (2, "mpijob-webhook: no right to register")
    assert len(lines) == 2


def test_reviews_continue_while_standard_error_is_not_read(tmp_path: Path) -> None:
    """Formerly, the replica answered no requests and no probes, until Kubernetes restarted it."""
    ca_file, good = tmp_path / "ca.pem", jobs.body(jobs.GOOD)
    addresses = ("--listen", f"{LOOPBACK[0]}:0", "--ops-listen", f"{LOOPBACK[0]}:0", "--ca-file", str(ca_file))
    command = [sys.executable, "-m", "webhook", "serve", *addresses, "--drain-seconds", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        listening: dict[str, str] = {}
        while "address" not in listening:
            listening = json.loads(process.stderr.readline())
        fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
        connection = Connection(listening["address"], ca_file.read_bytes())
        for _ in range(SMALL_PIPE // 50):  # each request has a log line of more than 200 bytes
            assert connection.post("/validate-mpijob", good).status == 200
        connection.close()
        for path in ("/healthz", "/readyz"):
            with urlopen(listening["ops"] + path, timeout=10) as reply:
                assert reply.status == 200
        process.terminate()
        assert process.wait(60) == 0
