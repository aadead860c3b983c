"""This project's service as a process that is registered as the admission webhook of a test cluster."""

import json
import ssl
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.process import free_port, responds
from tests.support import jobs
from webhook.api.yaml import load_all

NAME = "mpijob-webhook"


@dataclass(frozen=True)
class Replica:
    """A running service: its addresses, and the file with the CA of its certificate.

    The service writes this file only if it makes the certificate in memory.
    """

    url: str
    ops_url: str
    ca_file: Path

    def ops(self, path: str) -> str:
        """The response of the operations port."""
        with urllib.request.urlopen(self.ops_url + path, timeout=10) as response:
            text: str = response.read().decode()
            return text


@contextmanager
def running(
    cluster: Cluster, *flags: str, name: str = NAME, register: bool = True, ready: str = "/readyz"
) -> Iterator[Replica]:
    """Start the service, wait until `ready` responds, and stop it at the end of the block.

    `flags` are additional flags of `serve`.
    """
    replica = start(cluster, *flags, name=name, register=register, ready=ready)
    try:
        yield replica
    finally:
        stop(cluster, name)


def start(
    cluster: Cluster,
    *flags: str,
    name: str = NAME,
    register: bool = True,
    ready: str = "/readyz",
    code: Path | None = None,
) -> Replica:
    """Start the service and wait until `ready` responds. `code` is a folder with a different `webhook` package."""
    listen, ops = (f"127.0.0.1:{free_port()}" for _ in range(2))
    replica = Replica(f"https://{listen}", f"http://{ops}", cluster.dir / f"{name}-ca.pem")
    interpreter = (sys.executable,) if code is None else ("/usr/bin/env", f"PYTHONPATH={code}", sys.executable, "-P")
    command = (*interpreter, "-W", "error", "-m", "webhook", "serve")
    addresses = ["--listen", listen, "--ops-listen", ops, "--drain-seconds", "0.1", "--ca-file", str(replica.ca_file)]
    addresses += ["--ssh-keys-ready", "0"]  # only tests of keys need spare keys
    connection = ["--kubeconfig", str(cluster.kubeconfig), *(["--register"] if register else [])]
    cluster.launch(
        name, command, [*addresses, *connection, *flags], ready=lambda _: responds(f"{replica.ops_url}{ready}")
    )
    return replica


def stop(cluster: Cluster, name: str = NAME) -> None:
    """Stop the service by SIGTERM, like Kubernetes."""
    cluster.programs.pop(name).stop(grace=20)


def review_of(replica: Replica, job: dict[str, Any], hook: str = "validate-mpijob") -> dict[str, Any]:
    """The replica's response to the review of a job's creation, without the API server."""
    request = urllib.request.Request(
        f"{replica.url}/{hook}", data=jobs.body(job), headers={"Content-Type": "application/json"}
    )
    context = ssl.create_default_context(cafile=replica.ca_file)
    with urllib.request.urlopen(request, timeout=10, context=context) as reply:
        response: dict[str, Any] = json.load(reply)["response"]
        return response


def decisions(cluster: Cluster) -> list[dict[str, Any]]:
    """The decisions in the log of the running service.

    The service writes a line one turn of the event loop after its reply. This function first queries the operations
    port, which uses the same loop, so that all lines are written.
    """

    def events() -> list[dict[str, Any]]:
        lines = cluster.programs[NAME].log.read_text().splitlines()
        written = [json.loads(line) for line in lines if line.startswith("{")]
        start = max(index for index, line in enumerate(written) if line["event"] == "listening")
        return written[start:]

    responds(f"{events()[0]['ops']}/healthz")
    return [line for line in events() if line["event"] == "decision"]


def example(path: Path, **metadata: Any) -> dict[str, Any]:
    """The MPIJob in a file, with different metadata."""
    job: dict[str, Any] = load_all(path.read_text())[0]
    return {**job, "metadata": {**job["metadata"], **metadata}}
