"""The Grafana dashboard of the component `monitoring`, from its manifest."""

import json
from typing import Any, Final

from tests.support.paths import MANIFESTS
from webhook.api.yaml import load_all

FILE: Final = MANIFESTS / "components" / "monitoring" / "dashboard.yaml"
EMPTY: Final = {
    "HTTP {{code}}": "no client sends a bad request",
    "cannot be read: {{kind}}": "every kind can be read",
    "{{concern}}": "the configurations are as they should be",
    "{{plugin}} {{version}} {{state}}": "no plug-in is named",
    "{{entry}} fails": "no plug-in failed",
}
"""Legends of queries that return nothing in a healthy cluster, and why."""


def board() -> dict[str, Any]:
    """The dashboard as Grafana reads it."""
    (document,) = load_all(FILE.read_text(encoding="utf-8"))
    found: dict[str, Any] = json.loads(document["data"]["mpijob-webhook.json"])
    return found


def rows() -> list[dict[str, Any]]:
    """The titles of the rows."""
    return [panel for panel in board()["panels"] if panel["type"] == "row"]


def panels() -> list[dict[str, Any]]:
    """The panels of all rows, without the rows."""
    return [panel for panel in board()["panels"] if panel["type"] != "row"]


def filled(expr: str, window: str) -> str:
    """The query that Grafana sends for all namespaces, with `window` for its intervals."""
    for name, value in (("$namespace", ".*"), ("$__rate_interval", window), ("$__range", window)):
        expr = expr.replace(name, value)
    return expr
