"""The Grafana dashboards of the component `monitoring`, as their manifests have them."""

import json
from typing import Any, Final

from tests.support.paths import MANIFESTS
from webhook.api.yaml import load_all

FOLDER: Final = MANIFESTS / "components" / "monitoring"
FILES: Final = (FOLDER / "dashboard.yaml", FOLDER / "job-dashboard.yaml")
EMPTY: Final = {
    "HTTP {{code}}": "no client sends a bad request",
    "cannot be read: {{kind}}": "every kind can be read",
    "{{concern}}": "the configurations are as they should be",
    "{{plugin}} {{version}} {{state}}": "no plug-in is named",
    "{{entry}} failures": "no plug-in failed",
}
"""Legends of queries that have no answer in a healthy cluster, and why."""


def boards() -> list[dict[str, Any]]:
    """Both dashboards as Grafana reads them."""
    documents = [load_all(file.read_text(encoding="utf-8"))[0] for file in FILES]
    return [json.loads(text) for document in documents for text in document["data"].values()]


def rows() -> list[dict[str, Any]]:
    """The titles of the rows."""
    return [panel for board in boards() for panel in board["panels"] if panel["type"] == "row"]


def panels() -> list[dict[str, Any]]:
    """The panels of all rows, without the rows."""
    return [panel for board in boards() for panel in board["panels"] if panel["type"] != "row"]


def filled(expr: str, window: str) -> str:
    """As Grafana would ask it for all namespaces and jobs, with this for its intervals."""
    for name, value in (("$namespace", ".*"), ("$job", ".*"), ("$__rate_interval", window), ("$__range", window)):
        expr = expr.replace(name, value)
    return expr
