"""Objects of an OpenShift cluster: SCCs, permissions to use them, and namespaces like OpenShift's.

`default_sccs.json` has the default SCCs of 2026-08-21.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.namespaces import namespace
from webhook.cluster.snapshot import Snapshot
from webhook.predict.pod_security.labels import PREFIX

_DEFAULTS: Final = json.loads((Path(__file__).parent / "default_sccs.json").read_text())
DEFAULT_SCCS: Final[list[dict[str, Any]]] = _DEFAULTS["sccs"]
ORDER: Final[list[str]] = _DEFAULTS["order"]
"""The names of the default SCCs, in the order in which OpenShift's admission tries them."""
RESERVED: Final = {
    "openshift.io/sa.scc.uid-range": "1000680000/10000",
    "openshift.io/sa.scc.supplemental-groups": "1000680000/10000",
    "openshift.io/sa.scc.mcs": "s0:c26,c15",
}
"""The annotations of a namespace on OpenShift."""
CREATORS: Final = (
    "system:serviceaccount:mpi-operator:mpi-operator",
    "system:serviceaccount:kube-system:job-controller",
)
EVERYBODYS: Final = ("restricted-v2",)


def project(name: str = "team-a", **labels: str) -> dict[str, Any]:
    """A namespace with the labels and annotations of an OpenShift project."""
    labels = {**{f"{PREFIX}{mode}": "restricted" for mode in ("audit", "warn")}, **labels}
    made = namespace(name, **labels)
    made["metadata"]["annotations"] = RESERVED
    return made


def grants(account: str, *names: str, namespace: str = "team-a") -> dict[str, Any]:
    """The permission of an account to use SCCs in a namespace. A name without a colon is a ServiceAccount."""
    user = account if ":" in account else f"system:serviceaccount:{namespace}:{account}"
    metadata = {"namespace": namespace, "name": user}
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "SccGrants"}
    return {**head, "metadata": metadata, "constraints": [*names]}


def openshift(
    may_use: Mapping[str, Iterable[str]] | None = None, *more: Mapping[str, Any], namespace: str = "team-a"
) -> list[Mapping[str, Any]]:
    """A cluster with the default SCCs and a project in which ServiceAccounts may use additional SCCs."""
    accounts = {"default": (), **dict.fromkeys(CREATORS, ()), **(may_use or {})}
    granted = [grants(each, *EVERYBODYS, *names, namespace=namespace) for each, names in accounts.items()]
    return [project(namespace), *DEFAULT_SCCS, *granted, *more]


def view(may_use: Mapping[str, Iterable[str]] | None = None, *more: Mapping[str, Any]) -> Snapshot:
    return Snapshot(openshift(may_use, *more))


def cluster_quota(
    hard: Mapping[str, Any], used: Mapping[str, Any], *, name: str = "q", namespaces: Iterable[str] = ("team-a",)
) -> dict[str, Any]:
    each_uses = {"hard": hard, "used": dict.fromkeys(used, "0")}  # the service reads only the total
    within = [{"namespace": each, "status": each_uses} for each in namespaces]
    status = {"total": {"hard": hard, "used": used}, "namespaces": within}
    spec = {"quota": {"hard": hard}, "selector": {"labels": {"matchLabels": {"team": "a"}}}}
    head = {"apiVersion": "quota.openshift.io/v1", "kind": "ClusterResourceQuota", "metadata": {"name": name}}
    return {**head, "spec": spec, "status": status}
