"""The running service with the flags, ServiceAccount and CA of the manifests."""

import base64
import http.client
import json
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.controlplane.cluster import Cluster
from tests.support import jobs
from tests.support.installation import service

OURS = "mpijob-webhook"


@dataclass(frozen=True)
class Installed:
    """The running service."""

    cluster: Cluster
    address: str
    ops: str

    def synced(self) -> dict[str, str]:
        """The value of the metric `mpijob_webhook_cache_synced` for each kind: "1" or "0"."""
        samples = re.findall(r'^mpijob_webhook_cache_synced\{kind="(.+?)"\} (\d)', self.metrics(), re.MULTILINE)
        return dict(samples)

    def metrics(self) -> str:
        return service.Replica(self.address, self.ops, Path()).ops("/metrics")

    def review(self, hook: str, manifest: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """The response to the review of a creation, over TLS that is verified with the service's CA."""
        ca = self.cluster.get("secret", f"{OURS}-ca", "-n", OURS)["data"]
        pem = "".join(base64.b64decode(text).decode() for name, text in ca.items() if name.endswith(".crt"))
        context = ssl.create_default_context(cadata=pem)
        context.check_hostname = False
        connection = http.client.HTTPSConnection(urlsplit(self.address).netloc, timeout=20, context=context)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"/{hook}", jobs.body(manifest, **fields), headers)
        response: dict[str, Any] = json.load(connection.getresponse())["response"]
        connection.close()
        return response

    def log(self, event: str) -> list[dict[str, Any]]:
        lines = self.cluster.programs[OURS].log.read_text().splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in events if line["event"] == event]
