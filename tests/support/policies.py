"""Policy documents for tests: as layers, in ConfigMaps, and in files."""

from typing import Any

from webhook.cli.policy.documents import PolicyFile
from webhook.policy import document
from webhook.policy.in_force import policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import KEY, LABEL

HEADER = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"


def layer(name: str, text: str = "") -> Layer:
    return Layer(name, document.load(HEADER + text, policy_model()))


def configmap(name: str, text: str = "", *, labelled: bool = True) -> PolicyFile:
    """A good policy in a ConfigMap in a file."""
    found = layer(name, text).document
    return PolicyFile(name, f"{name}.yaml", document=found, in_configmap=True, labelled=labelled)


def policy_configmap(
    text: str | None, name: str = "platform", *, namespace: str | None = "mpijob-webhook"
) -> dict[str, Any]:
    """The ConfigMap of a policy, sound or not; without any for None."""
    metadata = {"name": name, "labels": {LABEL: "true"}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata if namespace is None else {**metadata, "namespace": namespace},
        "data": {} if text is None else {KEY: HEADER + text},
    }
