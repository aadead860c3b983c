"""A client that only holds connections open does not block other clients."""

import socket
from collections import Counter
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.support import jobs
from tests.support.live_service import Live, live
from tests.support.logs import Log
from webhook.server import http_server, ports, service
from webhook.server.http_server import LEAST, RESERVED, Connections
from webhook.server.limits import MAX_CONNECTIONS
from webhook.server.log import RefusalLog

GOOD = jobs.body(jobs.GOOD)


class Connection:
    def __init__(self, world: "World", name: str, *, busy: bool) -> None:
        self.peer = name[0]
        self.used = world.now
        self.busy = busy
        self._name = name
        self._world = world

    def cut(self, reason: str) -> None:
        self._world.cut.append(self._name)
        self._world.all.turned_away(reason, self.peer)
        self._world.all.forget(self)


class World:
    """The connections of a port, and a clock that the test sets."""

    def __init__(self, maximum: int = 3) -> None:
        self.now = 100.0
        self.reasons: Counter[str] = Counter()
        self.cut: list[str] = []
        self.log = Log()
        self.all = Connections(
            maximum=maximum,
            refused=lambda reason: self.reasons.update([reason]),
            log=RefusalLog(self.log, lambda: self.now),
        )

    def connect(self, name: str, *, busy: bool = False) -> bool:
        """Open a connection and return whether it is admitted. The first letter of `name` is the peer."""
        self.now += 0.1
        return self.all.admit(Connection(self, name, busy=busy))


def test_new_connection_beyond_the_maximum_replaces_the_longest_idle_connection() -> None:
    world = World()
    for name in ("a1", "a2", "b1"):
        world.connect(name, busy=name == "a1")
    assert world.connect("b2")
    assert (world.cut, world.reasons, len(world.all)) == (["a2"], {"full": 1}, 3)


def test_busy_connection_is_never_closed() -> None:
    world = World()
    for name in ("a1", "a2", "b1"):
        world.connect(name, busy=True)
    assert not world.connect("c1")
    assert (world.cut, world.reasons) == ([], {"full": 1})


def test_log_has_few_lines_about_many_rejected_connections() -> None:
    world = World(maximum=1)
    world.connect("a1", busy=True)
    for _ in range(50):
        world.connect("a2")
    assert world.log.lines == [("warning", "connection refused", {"reason": "full", "peer": "a"})]


@pytest.mark.parametrize(
    ("soft", "most"), [(256, LEAST), (1024, 1024 - RESERVED), (2**20, MAX_CONNECTIONS), (-1, MAX_CONNECTIONS)]
)
def test_maximum_of_connections_leaves_descriptors_for_other_uses(
    monkeypatch: pytest.MonkeyPatch, soft: int, most: int
) -> None:
    monkeypatch.setattr(http_server.resource, "getrlimit", lambda _: (soft, -1))
    assert http_server.most_connections() == most


def silent(running: Live) -> socket.socket:
    address = urlsplit(running.service.url)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def test_silent_connections_do_not_block_other_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formerly, 256 silent connections used up the descriptors, and even the probes failed."""
    monkeypatch.setattr(service, "most_connections", lambda: 20)
    with live() as running:
        held = [silent(running) for _ in range(60)]
        assert running.post("/validate-mpijob", GOOD).status == 200
        assert running.metric("connections") <= 20
        assert running.metric("connections_refused_total", reason="full") >= 40
        assert running.ops("/healthz") == "ok\n"
        assert running.log("connection refused")
        for each in held:
            each.close()


def test_missing_and_failed_handshakes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "MAX_HANDSHAKE_SECONDS", 0.1)
    with live() as running:
        with silent(running) as never, silent(running) as garbage:
            garbage.sendall(b"GET / HTTP/1.1\r\n\r\n" * 20)
            running.wait_until(lambda: running.metric("connections_refused_total", reason="handshake") == 2)
            assert never.recv(1) == b""
        assert running.metric("connections") == 0
        assert running.metric("internal_errors_total", webhook="validate") == 0


def test_reused_connection_is_counted_once() -> None:
    with live() as running:
        connection = running.connect()
        for _ in range(2):
            assert connection.post("/validate-mpijob", GOOD).status == 200
            assert running.metric("connections") == 1
        connection.close()
        running.wait_until(lambda: running.metric("connections") == 0)


def test_probes_reuse_a_connection() -> None:
    with live() as running:
        address = urlsplit(running.service.ops_url)
        probe = HTTPConnection(str(address.hostname), address.port)
        for connection_stays in (False, True):
            before = probe.sock
            probe.request("GET", "/healthz")
            assert probe.getresponse().read() == b"ok\n"
            assert (probe.sock is before) == connection_stays
        probe.close()
