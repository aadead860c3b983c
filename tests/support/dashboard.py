"""The Grafana dashboards in the manifests of the component `monitoring`."""

import json
from typing import Any, Final

from tests.support.paths import MANIFESTS
from webhook.api.yaml import load_all

FOLDER: Final = MANIFESTS / "components" / "monitoring"
FILES: Final = (FOLDER / "dashboard.yaml", FOLDER / "job-dashboard.yaml")
EMPTY: Final = {
    "HTTP {{code}}": "no client sends a bad request",
    "cannot be read: {{kind}}": "all kinds are readable",
    "{{concern}}": "the configurations are correct",
    "{{plugin}} {{version}} {{state}}": "no plug-in is configured",
    "{{entry}} failures": "no plug-in failed",
}
"""The legend of each query that has no result in a healthy cluster, with the reason."""


def boards() -> list[dict[str, Any]]:
    """The JSON of both dashboards."""
    documents = [load_all(file.read_text(encoding="utf-8"))[0] for file in FILES]
    return [json.loads(text) for document in documents for text in document["data"].values()]


def panels() -> list[dict[str, Any]]:
    """All panels except the row panels."""
    return [panel for board in boards() for panel in board["panels"] if panel["type"] != "row"]


def filled(expr: str, window: str) -> str:
    """The query with values for Grafana's variables: all namespaces, all jobs, and `window` for the intervals."""
    for name, value in (("$namespace", ".*"), ("$job", ".*"), ("$__rate_interval", window), ("$__range", window)):
        expr = expr.replace(name, value)
    return expr
