"""The inputs of a verdict except the job: a cluster, its policies, and the user who submits the job.

`world_sources` reads it from an API server.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from webhook.api import crd_schema, untyped
from webhook.api.crd_schema import CrdSchema
from webhook.api.review import UserInfo
from webhook.cli import files
from webhook.cli.files import Manifest, ManifestError
from webhook.client.access import DEFAULT_NAMESPACE
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.snapshot import KIND, NOT_INSTALLED, Snapshot, SnapshotError
from webhook.policy import store
from webhook.policy.in_force import Policy, PolicySet, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import PolicySource
from webhook.server import clock

POLICIES: Final = "policies"
USER: Final = "the user's exemptions"
PODS: Final = "the job's pods"
DENIED: Final = "no permission to read them"
NO_CLUSTER: Final = "none is known: see --kubeconfig and --cluster"

# Resources whose names users who submit jobs may not know.
_IN_WORDS: Final = {
    "kueue-configmaps": "Kueue's configuration",
    "other-pods": "pods of other owners",
    "own-leases": "reservations of quotas",
    "queues": "Volcano's queues",
    "sccgrants": "who may use SCCs",
}

MayExempt = Callable[[str, Iterable[str]], Mapping[str, bool]]
TryPods = Callable[[str, Mapping[str, Mapping[str, object]]], Mapping[str, str] | None]


@dataclass(slots=True)
class JobWorld:
    """The inputs except the job."""

    cluster: Snapshot = field(default_factory=lambda: Snapshot([]))
    """The objects of the cluster."""
    schema: CrdSchema | None = None
    """None skips the schema."""
    policies: PolicySet | None = None
    """The policies of the cluster; None if they are unknown."""
    instead: PolicySet | None = None
    """The policies that replace all of them, in every namespace."""
    user: UserInfo | None = None
    """The user who submits the job; None for unknown."""
    namespace: str = DEFAULT_NAMESPACE
    """The namespace of a job that names none."""
    may_exempt: MayExempt | None = None
    """Queries which rules the user may exempt jobs from in a namespace."""
    try_pods: TryPods | None = None
    """Tries by a dry run which pods the API server would reject in a namespace; None if the user may not."""
    today: date = field(default_factory=clock.today)
    """The day by which exemptions expire."""
    origin: str = ""
    """Where the policies of the cluster are, for people."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Why a resource is unknown, by its name."""
    otherwise: str = NO_CLUSTER
    """Why all other resources are unknown."""
    problems: list[str] = field(default_factory=list)
    """Faults of the policies, in lines."""
    unread: Sequence[str] = ()
    """What could not be read, in lines."""

    @property
    def layers(self) -> Sequence[Layer]:
        """The policies of the cluster, as far as they are known."""
        return self.policies.layers if self.policies else ()

    @property
    def jobs(self) -> list[bytes]:
        """The stored jobs, as JSON."""
        return [
            msgspec.json.encode({**job, "metadata": {**job["metadata"], "namespace": namespace}})
            for (namespace, _), job in self.cluster.jobs.items()
        ]

    def policy(self, namespace: str) -> Policy:
        if self.instead is not None:
            return self.instead.for_any_namespace()
        if self.policies is None:
            return PolicySet().for_any_namespace()
        known = self.cluster.get(NAMESPACES, namespace)
        return self.policies.for_namespace(known)

    def left_out(self, namespace: str) -> list[str]:
        """The policies that may or may not select a namespace, because its labels are unknown."""
        known = self.cluster.get(NAMESPACES, namespace)
        if self.instead or isinstance(known, Namespace):
            return []
        return [layer.name for layer in self.layers if layer.document.selector is not None]

    def reasons(self, unknown: Iterable[str]) -> dict[str, list[str]]:
        """Unknown resources, by the reason; kinds that the cluster does not have are left out, as in the service."""
        found: dict[str, list[str]] = {}
        for name in sorted(unknown):
            why = self.why.get(name, self.otherwise)
            if why != NOT_INSTALLED:
                found.setdefault(why, []).append(_IN_WORDS.get(name, name))
        return {why: sorted(names, key=str.casefold) for why, names in found.items()}


def of_nothing() -> JobWorld:
    """No cluster: the packaged schema and the built-in policy."""
    return JobWorld(schema=crd_schema.packaged())


def of_file(path: Path, *, policy_namespace: str) -> JobWorld:
    """The cluster in a file; ManifestError if it cannot be used."""
    found, errors = files.load([str(path)])
    if errors:
        raise errors[0]
    try:
        return of_objects(found, str(path), policy_namespace=policy_namespace)
    except SnapshotError as error:
        raise ManifestError(f"{path}: {error}") from None


def of_objects(found: Sequence[Manifest], origin: str, *, policy_namespace: str) -> JobWorld:
    """A cluster with these objects; SnapshotError if an object cannot be used."""
    heads = [manifest.document for manifest in found if manifest.kind == KIND]
    unknown = {str(what): str(why) for head in heads for what, why in (head.get("unknown") or {}).items()}
    # A reading names the namespace too.
    why = {what.partition(" in ")[0]: DENIED if why.startswith("forbidden") else why for what, why in unknown.items()}
    layers, problems = _policies(found, policy_namespace)
    return JobWorld(
        Snapshot(manifest.document for manifest in found),
        crd_schema.packaged(),
        policies=PolicySet(layers) if layers or (heads and POLICIES not in why) else None,
        origin=f"namespace {policy_namespace} of {origin}",
        why=why,
        otherwise=f"not in {origin}",
        problems=problems,
    )


def _policies(found: Iterable[Manifest], namespace: str) -> tuple[tuple[Layer, ...], list[str]]:
    """The policies of the ConfigMaps, or their last valid version as the service stored it; and problems."""
    sources, remembered = [], {}
    for configmap in (each for each in found if (each.kind, each.namespace) == ("ConfigMap", namespace)):
        document = configmap.document
        data = untyped.at(document, "data")
        if configmap.name == store.REMEMBERED:
            remembered = data
        elif untyped.at(document, "metadata", "labels").get(store.LABEL) == "true":
            text, version = data.get(store.KEY), str(untyped.at(document, "metadata").get("resourceVersion", ""))
            sources.append(PolicySource(configmap.name, "", version, text if isinstance(text, str) else None))
    policies = store.load(sources, store.remembered_texts(remembered), policy_model())
    problems = []
    for name, error in policies.errors.items():
        instead = "its last good document is" if policies.states[name] == "last-good" else "nothing of it is"
        problems.append(f'policy "{name}" is broken, {instead} in force: {"; ".join(error.splitlines())}')
    return policies.layers, problems
