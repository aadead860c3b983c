"""The permission to exempt jobs from rules, granted by RBAC on a real API server.

The permission is for the resource `rules`, which the API server does not serve. So these functions cannot use
`kubectl auth can-i` and `kubectl create role`.
"""

from collections.abc import Mapping
from typing import Any

from tests.controlplane.cluster import Cluster

RULES: Mapping[str, list[str]] = {
    "apiGroups": ["policy.training.openshift.io"],
    "resources": ["rules"],
    "verbs": ["exempt"],
}


def grant(cluster: Cluster, namespace: str, user: str, *rules: Mapping[str, list[str]]) -> None:
    """Grant the user these RBAC rules, with a Role and a RoleBinding `<user>-granted`."""
    name = f"{user}-granted"
    metadata = {"name": name, "namespace": namespace}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": list(rules)}
    cluster.kubectl("create", "-f", "-", stdin=role)
    cluster.kubectl("create", "rolebinding", name, f"--role={name}", f"--user={user}", "-n", namespace)


def may_exempt(cluster: Cluster, namespace: str, user: str, rule: str = "") -> bool:
    """Whether the authorizer allows the user to exempt jobs from `rule`. An empty `rule` means all rules."""
    attributes: dict[str, Any] = {
        "verb": "exempt",
        "group": "policy.training.openshift.io",
        "resource": "rules",
        "namespace": namespace,
        "name": rule,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    done = cluster.kubectl("create", "-f", "-", "-o", "jsonpath={.status.allowed}", stdin=review)
    return done.stdout == "true"
