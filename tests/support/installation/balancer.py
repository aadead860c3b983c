"""Stands in for a Service: it distributes new TCP connections to the ready replicas in turn."""

import itertools
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from tests.controlplane.process import free_port, responds


@dataclass(eq=False)
class Backend:
    """A replica, with its addresses for reviews and for readiness."""

    port: int
    ops_url: str
    ready: bool = False


@dataclass
class Balancer:
    """Listens on `port` of loopback until the block ends. `backends` may change at any time."""

    port: int = field(default_factory=free_port)
    backends: list[Backend] = field(default_factory=list)
    every: float = 0.05
    """Seconds between two checks of each replica's readiness."""

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=256)
        self._turn = itertools.count()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._accept, self._probe)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _probe(self) -> None:
        """Check readiness, like the kubelet and the endpoints controller, but more often."""
        while not self._over.wait(self.every):
            for backend in list(self.backends):
                try:
                    backend.ready = responds(f"{backend.ops_url}/readyz")
                except OSError:
                    backend.ready = False

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        ready = [backend for backend in self.backends if backend.ready]
        if not ready:
            client.close()
            return
        backend = ready[next(self._turn) % len(ready)]
        try:
            server = socket.create_connection(("127.0.0.1", backend.port), timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        other = threading.Thread(target=_pump, args=(server, client), daemon=True)
        other.start()
        _pump(client, server)
        other.join()
        client.close()
        server.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
