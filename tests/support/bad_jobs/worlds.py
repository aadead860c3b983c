"""The worlds in which bad jobs are submitted: a policy in which every rule rejects, a namespace, and a cluster."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from tests.support.bad_jobs import facts
from webhook.api.crd_schema import CrdSchema
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import PolicySet, load_policies
from webhook.rules import REGISTRY

# Resources for which an API server with ExtendedResourceToleration adds tolerations.
TOLERATED: Final = ["nvidia.com/gpu"]


@dataclass(frozen=True, slots=True)
class World:
    title: str
    namespace: str
    policy: PolicySet = field(repr=False)
    cluster: Snapshot = field(repr=False)
    schema: CrdSchema | None = None
    """The schema of MPIJobs. If it is None, jobs are not checked against a schema."""


@cache
def worlds() -> tuple[World, ...]:
    """A world without a cluster, a world for each namespace, and a world with strict settings."""
    usual, cluster = refusing({}), Snapshot(facts.objects())
    namespaces = ("open", "baseline", "restricted", "queued", "quota", "openshift", facts.LIMITED)
    return (
        World("nothing known", "open", usual, Snapshot([])),
        *(World(name, name, usual, cluster) for name in namespaces),
        World("tight policy", facts.REGULATED, refusing(facts.TIGHT), cluster),
    )


def refusing(settings: Mapping[str, Mapping[str, Any]]) -> PolicySet:
    """A policy in which every rule rejects. `settings` has additional settings by rule."""
    rules: dict[str, dict[str, Any]] = {rule: {"action": "deny", **settings.get(rule, {})} for rule in REGISTRY}
    rules["accelerator-available"]["toleratedTaints"] = TOLERATED
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}
    return load_policies(json.dumps({**head, "rules": rules}))
