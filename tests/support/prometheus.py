"""A real Prometheus from Debian's package, which scrapes the programs of a test."""

import http.server
import json
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.credentials import read_kubeconfig
from tests.controlplane.process import free_port, responds
from tests.support.debian import program
from tests.support.paths import MANIFESTS
from webhook.api.yaml import load_all

RULES = ("alerts.yaml", "job-rules.yaml")


def rule_groups(*files: str) -> list[dict[str, Any]]:
    """The groups of rules in these files of the component `monitoring`, by default in `RULES`."""
    folder = MANIFESTS / "components" / "monitoring"
    documents = [
        document for name in files or RULES for document in load_all((folder / name).read_text(encoding="utf-8"))
    ]
    return [group for document in documents for group in document["spec"]["groups"]]


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that runs until its cluster is stopped."""

    url: str

    def ask(self, path: str, **parameters: object) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as response:
            return json.load(response)["data"]

    def instant(self, query: str) -> list[Any]:
        """The current series of the query. Raises HTTPError 400 for an invalid query."""
        series: list[Any] = self.ask("query", query=query, time=time.time())["result"]
        return series


def start(cluster: Cluster, replicas: dict[str, str]) -> Prometheus:
    """Start a Prometheus that scrapes the API server and the replicas, the latter as in the ServiceMonitor.

    `replicas` has the URL of each replica's operations port by pod name.
    """
    prometheus = program("prometheus", package="prometheus")
    folder = cluster.dir / "prometheus"
    folder.mkdir()
    (folder / "rules.yml").write_text(json.dumps({"groups": rule_groups()}))
    (monitor,) = load_all((MANIFESTS / "components" / "monitoring" / "service-monitor.yaml").read_text())
    targets = [
        {"targets": [url.removeprefix("http://")], "labels": {"pod": pod, "namespace": "mpijob-webhook"}}
        for pod, url in replicas.items()
    ]
    jobs: list[dict[str, Any]] = [
        {
            "job_name": f"mpijob-webhook-{number}",
            "metrics_path": endpoint.get("path", "/metrics"),
            "honor_labels": endpoint.get("honorLabels", False),
            "static_configs": targets,
        }
        for number, endpoint in enumerate(monitor["spec"]["endpoints"])
    ]
    config = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [*jobs, *_exporters(), _api_server(cluster.kubeconfig, folder)],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    address = f"127.0.0.1:{free_port()}"
    flags: Sequence[str] = (
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    )
    cluster.launch("prometheus", (prometheus,), flags, ready=lambda _: responds(f"http://{address}/-/ready"))
    return Prometheus(f"http://{address}")


EXPORTERS = {"kube-state-metrics": True, "cadvisor": True, "dcgm-exporter": False}
"""Simulated exporters, and whether they are usually scraped with honorLabels."""


def exposition(name: str) -> str:
    """The real metrics and labels of an exporter for a job with two workers."""
    return (Path(__file__).parent / "exporters" / f"{name}.prom").read_text(encoding="utf-8")


def _exporters() -> Iterator[dict[str, Any]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Exposition)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, honor in EXPORTERS.items():
        labels = {"namespace": "monitoring", "pod": f"{name}-x"}
        targets = [{"targets": [f"127.0.0.1:{server.server_port}"], "labels": labels}]
        yield {"job_name": name, "metrics_path": f"/{name}", "honor_labels": honor, "static_configs": targets}


class _Exposition(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(exposition(self.path[1:]).encode())

    def log_message(self, *_: object) -> None:
        pass


def _api_server(kubeconfig: Path, folder: Path) -> dict[str, Any]:
    """The scrape configuration for the API server. It keeps only admission metrics, because the others are large."""
    server, pem = read_kubeconfig(kubeconfig)
    for name, content in pem.items():
        (folder / f"{name}.pem").write_bytes(content)
    return {
        "job_name": "apiserver",
        "scheme": "https",
        "scrape_interval": "5s",
        "tls_config": {f"{name}_file": str(folder / f"{name}.pem") for name in pem},
        "static_configs": [{"targets": [urllib.parse.urlsplit(server).netloc]}],
        "metric_relabel_configs": [
            {"source_labels": ["__name__"], "regex": "apiserver_admission_.*", "action": "keep"}
        ],
    }
