"""Parts of a kubelet that KWOK does not simulate: logs for the API server, and pods that fail.

The API server requests logs from this server, because the status of each node has this server's address.
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/kubelet/server/server.go (`getContainerLogs`)
"""

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.controlplane.cluster import Cluster
from tests.controlplane.credentials import Authority

Json = dict[str, Any]
ADDRESS = "127.0.0.1"


class Kubelet:
    """A kubelet for all nodes. `logs` has the log of each (namespace, pod)."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.logs: dict[tuple[str, str], str] = {}

    def of_nodes(self, nodes: list[Json]) -> list[Json]:
        """A copy of `nodes` whose status has the address of this kubelet."""
        status = {
            "addresses": [{"type": kind, "address": ADDRESS} for kind in ("InternalIP", "Hostname")],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }
        return [{**node, "status": {**node["status"], **status}} for node in nodes]


@contextmanager
def kubelet(folder: Path) -> Iterator[Kubelet]:
    """A kubelet that listens until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            _, kind, namespace, pod, *_ = url.path.split("/") + [""] * 3
            text = served.logs.get((namespace, pod)) if kind == "containerLogs" else None
            lines = int(parse_qs(url.query).get("tailLines", ["1000"])[0])
            body = "".join((text or "").splitlines(keepends=True)[-lines:]).encode()
            self.send_response(200 if text is not None else 404)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keep the terminal quiet: the test reports the outcome."""

    certificate, key = Authority().issue("kubelet", loopback=True)
    (folder / "kubelet.crt").write_bytes(certificate)
    (folder / "kubelet.key").write_bytes(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "kubelet.crt", folder / "kubelet.key")
    server = ThreadingHTTPServer((ADDRESS, 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    served = Kubelet(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def set_status(cluster: Cluster, pod: Json, **status: Any) -> None:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    patch = ("patch", "pod", name, "-n", namespace, "--subresource=status", "--type=merge", "-p")
    cluster.kubectl(*patch, json.dumps({"status": status}))


def event(about: Mapping[str, Any], reason: str, message: str) -> Json:
    """An Event of a kubelet about a pod."""
    metadata = about["metadata"]
    keys = ("namespace", "name", "uid")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", **{key: metadata[key] for key in keys}},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "source": {"component": "kubelet"},
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
