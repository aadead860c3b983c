"""Layers and policies in files for the tests."""

from webhook.cli.policy.documents import PolicyFile
from webhook.policy import document
from webhook.policy.in_force import policy_model
from webhook.policy.layers import Layer

HEADER = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"


def layer(name: str, text: str = "") -> Layer:
    return Layer(name, document.load(HEADER + text, policy_model()))


def configmap(name: str, text: str = "", *, labelled: bool = True) -> PolicyFile:
    """A good policy in a ConfigMap in a file."""
    found = layer(name, text).document
    return PolicyFile(name, f"{name}.yaml", document=found, in_configmap=True, labelled=labelled)
