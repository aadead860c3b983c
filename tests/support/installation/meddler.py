"""A foreign mutating webhook that runs after this service and removes all labels and annotations with Istio's key."""

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from certs.authority import Authority
from tests.controlplane.cluster import Cluster
from tests.support.installation import hooks
from webhook.injections.istio import KEY

# Mutating hooks run in the order of the names of their configurations.
NAME = "zz-takes-out.example.com"


@contextmanager
def meddling(cluster: Cluster, folder: Path, *, reinvocation: str) -> Iterator[list[str]]:
    """The webhook is registered until the block ends. Yields the list of uids of its requests."""
    authority = Authority("another project", lifetime=timedelta(days=1))
    pair = authority.issue(["127.0.0.1"], lifetime=timedelta(days=1))
    (folder / "meddler.pem").write_bytes(pair.certificate_pem + pair.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "meddler.pem")
    calls: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(calls))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    client = {
        "url": f"https://127.0.0.1:{server.server_address[1]}/",
        "caBundle": b64encode(authority.certificate_pem).decode(),
    }
    configuration = hooks.configuration("Mutating", NAME, client, hooks.MPIJOBS, reinvocationPolicy=reinvocation)
    try:
        cluster.kubectl("create", "-f", "-", stdin=configuration)
        yield calls
    finally:
        cluster.kubectl("delete", "mutatingwebhookconfiguration", NAME, "--ignore-not-found")
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(calls: list[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))["request"]
            calls.append(request["uid"])
            patch = b64encode(json.dumps(list(_removals(request["object"], ""))).encode()).decode()
            response = {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
            body = json.dumps(review).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Keep the terminal quiet."""

    return Handler


def _removals(value: Any, pointer: str) -> Iterator[dict[str, str]]:
    """A remove operation for each label and annotation with the key."""
    for name, child in value.items() if isinstance(value, dict) else ():
        path = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        if name == KEY:
            yield {"op": "remove", "path": path}
        else:
            yield from _removals(child, path)
