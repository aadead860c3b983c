"""Policy documents for tests: as layers, in ConfigMaps, and in files."""

from pathlib import Path
from typing import Any

from webhook.cli.policy.documents import PolicyFile
from webhook.policy import document
from webhook.policy.in_force import policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import KEY, LABEL

NAMESPACE = "mpijob-webhook"
HEADER = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"


def quick_keys(folder: Path) -> tuple[str, str]:
    """Flags of `serve` for ed25519 SSH keys, because the generation of an RSA key takes half a second."""
    path = folder / "quick-keys.yaml"
    path.write_text(f"{HEADER}sshKeys: ed25519\n")
    return "--policy", str(path)


def layer(name: str, text: str = "") -> Layer:
    return Layer(name, document.load(HEADER + text, policy_model()))


def policy_file(name: str, text: str = "", *, labelled: bool = True) -> PolicyFile:
    """A file with a ConfigMap that contains a valid policy."""
    loaded = layer(name, text).document
    return PolicyFile(name, f"{name}.yaml", document=loaded, in_configmap=True, labelled=labelled)


def configmap(name: str, text: object, *, label: str = "true", namespace: str | None = NAMESPACE) -> dict[str, Any]:
    """A ConfigMap with this text as the policy. It has no policy if `text` is None, and no label if `label` is ""."""
    metadata: dict[str, Any] = {"name": name, "labels": {LABEL: label} if label else {}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata if namespace is None else {**metadata, "namespace": namespace},
        "data": {} if text is None else {KEY: text},
    }


def policy_configmap(text: str, name: str = "platform", *, namespace: str | None = NAMESPACE) -> dict[str, Any]:
    """A ConfigMap whose policy is the header and `text`. The policy may be invalid."""
    return configmap(name, HEADER + text, namespace=namespace)
