"""Namespaces, and a cluster with a namespace that has Pod Security labels."""

from typing import Any

from webhook.cluster.snapshot import Snapshot
from webhook.predict.pod_security.labels import PREFIX


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def labelled(name: str = "team-a", **modes: str) -> Snapshot:
    """A cluster with only the namespace `name`. `enforce_version="v1.30"` sets the label `enforce-version`."""
    labels = {PREFIX + mode.replace("_", "-"): value for mode, value in modes.items()}
    return Snapshot([namespace(name, **labels)])
