"""Writes the manifests that are generated from the code: `python -m tools.manifests FOLDER`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from webhook import PROGRAM
from webhook.api import yaml
from webhook.client.objects import KubernetesObject
from webhook.cluster.resource import WatchedPlace
from webhook.installation.components import COMPONENTS
from webhook.installation.doctor.rights import read_rules
from webhook.installation.registration import by_service, configurations
from webhook.kit.optional_parts import ComponentRights
from webhook.parts.trainer.webhooks import hooks as trainer_hooks

RBAC: Final = "rbac.authorization.k8s.io"
PART_OF: Final = {"app.kubernetes.io/part-of": PROGRAM}
NOTICE: Final = "# Written by `make manifests` out of the code: changes here are lost.\n"


def files() -> dict[str, str]:
    """The text of every generated file by path in manifests/."""
    return {
        "base/cluster-view.yaml": _text(
            "Read permissions for the objects that rules and injections use.",
            (
                _role(f"{PROGRAM}-view", None),
                _role(f"{PROGRAM}-own", WatchedPlace.OWN),
                _role(f"{PROGRAM}-kueue", WatchedPlace.KUEUE),
            ),
        ),
        "components/hooks/webhooks.yaml": _text("The requests that the API server sends to the service.", webhooks()),
        "components/trainer/webhooks.yaml": _patch(
            "Hooks for Kubeflow Trainer's kinds, in addition to the hooks of every installation.",
            trainer_hooks(by_service(PROGRAM, PROGRAM), PROGRAM),
        ),
        **{
            f"components/{each.component}/rbac.yaml": _text(f"Permissions for `{each.option}`.", _component_role(each))
            for each in COMPONENTS
        },
    }


def webhooks() -> list[KubernetesObject]:
    """The webhook configurations of an installation. Their caBundles are set in the cluster."""
    return configurations(by_service(PROGRAM, PROGRAM), labels=PART_OF, policy_namespace=PROGRAM)


def _role(name: str, place: WatchedPlace | None) -> KubernetesObject:
    """A Role for the service's namespace, otherwise a ClusterRole: Kueue's namespace may have a different name."""
    own = place is WatchedPlace.OWN
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role" if own else "ClusterRole",
        "metadata": {"name": name, **({"namespace": PROGRAM} if own else {})},
        "rules": read_rules(place),
    }


def _component_role(component: ComponentRights) -> list[KubernetesObject]:
    """The ClusterRole of a component, and its binding to the service's account."""
    name = f"{PROGRAM}-{component.component}"
    rules = [
        {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
        for rule in component.rules
    ]
    return [
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": PROGRAM, "namespace": PROGRAM}],
        },
    ]


def _patch(comment: str, hooks: Iterable[KubernetesObject]) -> str:
    return f"{NOTICE}# {comment}\n" + yaml.dump([{"op": "add", "path": "/webhooks/-", "value": hook} for hook in hooks])


def _text(comment: str, manifests: Iterable[KubernetesObject]) -> str:
    return f"{NOTICE}# {comment}\n" + "---\n".join(map(yaml.dump, manifests))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.manifests FOLDER")
    for file, text in files().items():
        (Path(sys.argv[1]) / file).write_text(text, encoding="utf-8")
