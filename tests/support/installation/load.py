"""Clients that steadily create objects by server-side dry run and count the API server's replies."""

import http.client
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from tests.controlplane.credentials import client_of

ADMITTED = "admitted"


@dataclass
class Load:
    """Clients create `manifest` at `path` repeatedly until the block ends."""

    kubeconfig: Path
    path: str
    manifest: dict[str, Any]
    threads: int = 4
    """The number of clients."""
    patience: float = 30
    """Seconds for which a client retries a creation."""
    pause: float = 0.3
    """Seconds between two creations. Without a pause, the load would use most of the processor time."""
    first: Counter[str] = field(default_factory=Counter)
    """The number of first attempts that got each reply."""
    lost: list[str] = field(default_factory=list)
    """The last reply to each creation for which all attempts failed."""

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._workers = [threading.Thread(target=self._work, args=(number,)) for number in range(self.threads)]
        for worker in self._workers:
            worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for worker in self._workers:
            worker.join()

    @property
    def failed(self) -> dict[str, int]:
        """The number of first attempts that got each reply other than `ADMITTED`."""
        with self._lock:
            return {answer: count for answer, count in self.first.items() if answer != ADMITTED}

    def _work(self, number: int) -> None:
        client = Client(self.kubeconfig)
        count = 0
        while not self._over.wait(self.pause):
            count += 1
            self._create(client, f"load-{number}-{count}")
        client.close()

    def _create(self, client: "Client", name: str) -> None:
        """Try until the job is admitted, or `patience` has passed."""
        body = json.dumps({**self.manifest, "metadata": {**self.manifest["metadata"], "name": name}}).encode()
        answer = client.create(self.path, body)
        with self._lock:
            self.first[answer] += 1
        deadline = time.monotonic() + self.patience
        while answer != ADMITTED and time.monotonic() < deadline:
            time.sleep(0.1)
            answer = client.create(self.path, body)
        if answer != ADMITTED:
            with self._lock:
                self.lost.append(answer)


class Client:
    """A connection to the API server. After an error, the connection is opened again."""

    def __init__(self, kubeconfig: Path, *, dry_run: bool = True) -> None:
        self._query = "?dryRun=All" if dry_run else ""
        server, self._context = client_of(kubeconfig)
        self._host = urlsplit(server)
        self._connection: http.client.HTTPSConnection | None = None

    def close(self) -> None:
        """Close the connection. The next creation opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def create(self, path: str, body: bytes) -> str:
        """Create an object. Returns ADMITTED, the API server's error, or the error of the connection."""
        while True:
            fresh = self._connection is None
            if self._connection is None:
                self._connection = http.client.HTTPSConnection(
                    str(self._host.hostname), self._host.port, context=self._context, timeout=30
                )
            try:
                headers = {"Content-Type": "application/json"}
                self._connection.request("POST", f"{path}{self._query}", body, headers)
                response = self._connection.getresponse()
                text = response.read()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if fresh:
                    return f"API server: {type(error).__name__}"
                # The server may have closed the idle connection, so the loop tries a new connection.
                continue
            if response.status == 201:
                return ADMITTED
            return f"{response.status} {json.loads(text).get('message', '')[:300]}"
