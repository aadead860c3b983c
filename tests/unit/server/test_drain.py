"""A stopping replica loses no request: clients that follow `Connection: close` never get an error."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.support import jobs
from tests.support.live_service import Connection, head, live

GOOD = jobs.body(jobs.GOOD)
CLIENTS = 8


class Client(threading.Thread):
    """Sends reviews on one connection until a reply closes it. A real client would then use another replica."""

    def __init__(self, url, ca_pem):
        super().__init__()
        self.connection = Connection(url, ca_pem)
        self.replies = []
        self.started_well = threading.Event()
        self.error = None

    def run(self):
        try:
            while True:
                self.replies.append(self.connection.post("/validate-mpijob", GOOD))
                self.started_well.set()
                if self.replies[-1].headers.get("connection") == "close":
                    return
        except Exception as error:  # noqa: BLE001 - the test checks the error
            self.error = error
        finally:
            self.started_well.set()
            self.connection.close()


@contextmanager
def steady(url, ca_pem):
    """Clients that send continuously. At the end of the block each connection must have closed without a failure."""
    clients = [Client(url, ca_pem) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.started_well.wait()
    yield
    for client in clients:
        client.join()
        assert client.error is None
        assert {reply.status for reply in client.replies} == {200}
        assert ["connection" in reply.headers for reply in client.replies] == [False] * (len(client.replies) - 1) + [
            True
        ]


def test_no_request_is_lost_in_a_drain():
    with live(drain_seconds=7) as service:
        paused, go_on = threading.Event(), asyncio.Event()

        async def pause(seconds):
            assert seconds == 7
            paused.set()
            await go_on.wait()

        slow = service.connect()
        slow.send(head("/validate-mpijob", content_length=str(len(GOOD))), GOOD[:50])
        idle = service.connect()
        assert idle.post("/validate-mpijob", GOOD).status == 200
        with steady(service.service.url, service.service.ca_pem):
            drain = service.begin(service.service.drain(pause=pause))
            paused.wait()

        with pytest.raises(HTTPError) as error:
            service.ops("/readyz")
        assert b"[-]serving failed: draining" in error.value.read()
        late = service.post("/validate-mpijob", GOOD)  # a client that still sends requests during the drain
        assert (late.status, late.headers["connection"]) == (200, "close")
        late_error = service.post("/validate-mpijob", b"")
        assert (late_error.status, late_error.headers["connection"]) == (400, "close")

        service.loop.call_soon_threadsafe(go_on.set)
        service.wait_until(lambda: not service.service.port.listening)
        # The kernel may still accept a connection that the loop then closes, because uvloop closes a port later.
        with pytest.raises((ConnectionRefusedError, ConnectionResetError)):
            service.connect()
        assert not drain.done()
        slow.send(GOOD[50:])
        answer = slow.receive()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        drain.result(30)
        assert slow.closed
    assert idle.closed
    slow.close()
    idle.close()


def test_drain_does_not_wait_forever_for_a_slow_client():
    with live(timeout_seconds=0.05) as service:
        slow = service.connect()
        slow.send(head("/validate-mpijob", content_length=str(len(GOOD))))
        service.wait_until(lambda: service.service.server.in_flight == 1)
        service.begin(service.service.drain()).result(30)
    slow.close()


class Process:
    """The real service process. `events` has the lines of its log so far."""

    def __init__(self, ca_file, *flags):
        addresses = ("--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--ca-file", str(ca_file))
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "webhook", "serve", *addresses, *flags], stderr=subprocess.PIPE
        )
        self.events = []
        self.wait_for("ready")
        listening = next(line for line in self.events if line["event"] == "listening")
        self.url, self.ops = listening["address"], listening["ops"]
        self.ca_pem = ca_file.read_bytes()

    def wait_for(self, event):
        while not self.events or self.events[-1]["event"] != event:
            self.events.append(json.loads(self.process.stderr.readline()))

    def end(self):
        """Wait for the process and return its exit code. After that, `events` has all log lines."""
        self.events += [json.loads(line) for line in self.process.stderr.read().splitlines()]
        return self.process.wait(30)


@contextmanager
def process(*args):
    started = Process(*args)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        started.process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_drains_the_real_process(tmp_path, number):
    with process(tmp_path / "ca.pem", "--drain-seconds", "2", "--log-level", "info") as server:
        # A thread reads the log's pipe, because the main thread waits for the clients.
        reader = threading.Thread(target=server.wait_for, args=("stopped",))
        with steady(server.url, server.ca_pem):
            reader.start()
            server.process.send_signal(number)
        reader.join()
        assert server.end() == 0
        assert [line for line in server.events if line["level"] != "info"] == []


def test_second_signal_ends_the_process_at_once(tmp_path):
    with process(tmp_path / "ca.pem", "--drain-seconds", "3600") as server:
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("draining")
        with pytest.raises(HTTPError) as error, urlopen(server.ops + "/readyz"):
            pass
        assert error.value.code == 503
        error.value.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 128 + signal.SIGTERM
        assert server.events[-1]["event"] == "stopped at once"


def test_start_failure_is_reported_on_one_line(tmp_path):
    command = [sys.executable, "-W", "error", "-m", "webhook", "serve", "--policy", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == f"mpijob-webhook: cannot read the policy {tmp_path}/none: No such file or directory\n"
