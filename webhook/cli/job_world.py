"""What the verdict on a job depends on besides the job: a cluster, its policies, and who submits it.

`world_sources` reads it from a file or from an API server.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from webhook.api import crd_schema
from webhook.api.crd_schema import CrdSchema
from webhook.api.review import UserInfo
from webhook.cli.files import Manifest
from webhook.cli.policy import kept
from webhook.client.access import DEFAULT_NAMESPACE
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.snapshot import KIND, NOT_INSTALLED, Snapshot
from webhook.policy.in_force import Policy, PolicySet
from webhook.server import clock

POLICIES: Final = "policies"
USER: Final = "the user's exemptions"
DENIED: Final = "no permission to read them"
NO_CLUSTER: Final = "no cluster is known: see --kubeconfig and --cluster"

# Of resources that nobody who submits jobs knows by their names.
_IN_WORDS: Final = {
    "kueue-configmaps": "Kueue's configuration",
    "other-pods": "pods of others",
    "own-leases": "reservations of quotas",
    "queues": "Volcano's queues",
}

MayExempt = Callable[[str, Iterable[str]], Mapping[str, bool]]


@dataclass(slots=True)
class JobWorld:
    """What is known besides the job."""

    cluster: Snapshot = field(default_factory=lambda: Snapshot([]))
    """What the cluster holds."""
    schema: CrdSchema | None = None
    """None leaves the schema out."""
    policies: PolicySet | None = None
    """Those of the cluster; None where they are unknown."""
    instead: PolicySet | None = None
    """Those that count in place of all of them, in every namespace."""
    user: UserInfo | None = None
    """Who submits the job; None for unknown."""
    namespace: str = DEFAULT_NAMESPACE
    """Where a job goes that names no namespace."""
    may_exempt: MayExempt | None = None
    """Asks which rules the user may exempt jobs from in a namespace."""
    today: date = field(default_factory=clock.today)
    """The day on which exemptions end or hold."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Why nothing is known of a resource, by its name."""
    otherwise: str = NO_CLUSTER
    """Why nothing is known of the others."""
    problems: list[str] = field(default_factory=list)
    """What is wrong with what was read, in lines."""

    def policy(self, namespace: str) -> Policy:
        """The policy that counts in a namespace."""
        if self.instead is not None:
            return self.instead.for_any_namespace()
        if self.policies is None:
            return PolicySet().for_any_namespace()
        known = self.cluster.get(NAMESPACES, namespace)
        return self.policies.for_namespace(known)

    def left_out(self, namespace: str) -> list[str]:
        """The policies that may be for a namespace or not, because its labels are unknown."""
        known = self.cluster.get(NAMESPACES, namespace)
        if self.instead or not self.policies or isinstance(known, Namespace):
            return []
        return [layer.name for layer in self.policies.layers if layer.document.selector is not None]

    def reasons(self, unknown: Iterable[str]) -> dict[str, list[str]]:
        """What is not known, by why; of kinds that the cluster does not have the service knows no more."""
        found: dict[str, list[str]] = {}
        for name in sorted(unknown):
            why = self.why.get(name, self.otherwise)
            if why != NOT_INSTALLED:
                found.setdefault(why, []).append(_IN_WORDS.get(name, name))
        return {why: sorted(names, key=str.casefold) for why, names in found.items()}


def of_objects(found: Sequence[Manifest], origin: str, *, policy_namespace: str) -> JobWorld:
    """The cluster that these objects are; SnapshotError when it cannot be used."""
    heads = [manifest.document for manifest in found if manifest.kind == KIND]
    layers, problems = kept.in_force(found, policy_namespace)
    why = by_resource({str(name): str(why) for head in heads for name, why in (head.get("unknown") or {}).items()})
    return JobWorld(
        Snapshot(manifest.document for manifest in found),
        crd_schema.packaged(),
        policies=PolicySet(layers) if layers or (heads and POLICIES not in why) else None,
        why=why,
        otherwise=f"not in {origin}",
        problems=problems,
    )


def by_resource(unknown: Mapping[str, str]) -> dict[str, str]:
    """Why nothing is known of a resource, by its name: a reading names the namespace too."""
    return {what.partition(" in ")[0]: DENIED if why.startswith("forbidden") else why for what, why in unknown.items()}


def of_nothing() -> JobWorld:
    """No cluster: the packaged schema and the built-in policy."""
    return JobWorld(schema=crd_schema.packaged())
