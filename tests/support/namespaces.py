"""A cluster with one namespace and its Pod Security labels."""

from webhook.cluster.snapshot import Snapshot
from webhook.predict.pod_security.labels import PREFIX


def labelled(name: str = "team-a", **modes: str) -> Snapshot:
    """What is known of a cluster with the namespace `name`; `enforce_version="v1.30"` is its label enforce-version."""
    labels = {PREFIX + mode.replace("_", "-"): value for mode, value in modes.items()}
    return Snapshot([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}])
