"""The head of a snapshot. It lists the kinds of objects that are completely known, and the kinds not installed."""

from collections.abc import Iterable
from typing import Any

from webhook.cluster.snapshot import API_VERSION, KIND


def head(*kinds: str, not_installed: Iterable[str] = ()) -> dict[str, Any]:
    unknown = dict.fromkeys(not_installed, "not installed")
    return {"apiVersion": API_VERSION, "kind": KIND, "known": {kind: {} for kind in kinds}, "unknown": unknown}
