"""The inputs of a verdict, except the job: a cluster, its policies, and the user who submits the job."""

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
DENIED: Final = "no permission to read them"
NO_CLUSTER: Final = "none given: see --kubeconfig and --cluster"

# Names of resources in messages.
_IN_WORDS: Final = {
    "kueue-configmaps": "Kueue's configuration",
    "other-pods": "pods of other owners",
    "own-leases": "reservations of quotas",
    "queues": "Volcano's queues",
    "sccgrants": "who may use SCCs",
}

MayExempt = Callable[[str, Iterable[str]], Mapping[str, bool]]


@dataclass(slots=True)
class JobWorld:
    """The inputs of a verdict, except the job."""

    cluster: Snapshot = field(default_factory=lambda: Snapshot([]))
    schema: CrdSchema | None = None
    """The schema of MPIJobs; None skips the check against the schema."""
    policies: PolicySet | None = None
    """The policies of the cluster; None if unknown."""
    instead: PolicySet | None = None
    """Policies that replace the policies of the cluster, in every namespace."""
    user: UserInfo | None = None
    namespace: str = DEFAULT_NAMESPACE
    """The namespace of jobs that set no namespace."""
    may_exempt: MayExempt | None = None
    """Takes a namespace and rules. Returns true for each rule from which the user may exempt jobs."""
    today: date = field(default_factory=clock.today)
    """The current day (UTC), for exemptions that expire."""
    origin: str = ""
    why: Mapping[str, str] = field(default_factory=dict)
    """The reasons why resources are unknown, by name of the resource."""
    otherwise: str = NO_CLUSTER
    """The reason for unknown resources that are not in `why`."""
    problems: list[str] = field(default_factory=list)
    """Messages about broken policies."""
    unread: Sequence[str] = ()
    """Messages about resources that could not be read."""

    @property
    def layers(self) -> Sequence[Layer]:
        return self.policies.layers if self.policies else ()

    @property
    def jobs(self) -> list[bytes]:
        return [
            msgspec.json.encode({**job, "metadata": {**job["metadata"], "namespace": namespace}})
            for (namespace, _), job in self.cluster.jobs.items()
        ]

    def policy(self, namespace: str) -> Policy:
        if self.instead is not None:
            return self.instead.for_any_namespace()
        if self.policies is None:
            return PolicySet().for_any_namespace()
        selected = self.cluster.get(NAMESPACES, namespace)
        return self.policies.for_namespace(selected)

    def left_out(self, namespace: str) -> list[str]:
        """Policies that are ignored because the labels of the namespace are unknown."""
        selected = self.cluster.get(NAMESPACES, namespace)
        if self.instead or isinstance(selected, Namespace):
            return []
        return [layer.name for layer in self.layers if layer.document.selector is not None]

    def reasons(self, unknown: Iterable[str]) -> dict[str, list[str]]:
        """Unknown resources by reason. Resources that the cluster does not have are left out."""
        by_reason: dict[str, list[str]] = {}
        for name in sorted(unknown):
            why = self.why.get(name, self.otherwise)
            if why != NOT_INSTALLED:
                by_reason.setdefault(why, []).append(_IN_WORDS.get(name, name))
        return {why: sorted(names, key=str.casefold) for why, names in by_reason.items()}


def of_nothing() -> JobWorld:
    """The inputs without a cluster: the packaged schema and the built-in policy."""
    return JobWorld(schema=crd_schema.packaged())


def of_file(path: Path, *, policy_namespace: str) -> JobWorld:
    """The inputs from a file with the objects of a cluster; ManifestError for an unusable file."""
    objects, errors = files.load([str(path)])
    if errors:
        raise errors[0]
    try:
        return of_objects(objects, str(path), policy_namespace=policy_namespace)
    except SnapshotError as error:
        raise ManifestError(f"{path}: {error}") from None


def of_objects(objects: Sequence[Manifest], origin: str, *, policy_namespace: str) -> JobWorld:
    """The inputs from the objects of a cluster; SnapshotError for an unusable object."""
    heads = [manifest.document for manifest in objects if manifest.kind == KIND]
    unknown = {str(name): str(why) for head in heads for name, why in (head.get("unknown") or {}).items()}
    # The keys of `unknown` may end with " in NAMESPACE".
    why = {name.partition(" in ")[0]: DENIED if why.startswith("forbidden") else why for name, why in unknown.items()}
    layers, problems = _policies(objects, policy_namespace)
    return JobWorld(
        Snapshot(manifest.document for manifest in objects),
        crd_schema.packaged(),
        policies=PolicySet(layers) if layers or (heads and POLICIES not in why) else None,
        origin=f"namespace {policy_namespace} of {origin}",
        why=why,
        otherwise=f"not in {origin}",
        problems=problems,
    )


def _policies(objects: Iterable[Manifest], namespace: str) -> tuple[tuple[Layer, ...], list[str]]:
    """(policies, messages about broken policies). The last valid version of a policy replaces a broken version."""
    sources, last_valid = [], {}
    for configmap in objects:
        if (configmap.kind, configmap.namespace) != ("ConfigMap", namespace):
            continue
        document = configmap.document
        data = untyped.at(document, "data")
        if configmap.name == store.REMEMBERED:
            last_valid = data
        elif untyped.at(document, "metadata", "labels").get(store.LABEL) == "true":
            text, version = data.get(store.KEY), str(untyped.at(document, "metadata").get("resourceVersion", ""))
            sources.append(PolicySource(configmap.name, "", version, text if isinstance(text, str) else None))
    policies = store.load(sources, store.remembered_texts(last_valid), policy_model())
    problems = []
    for name, error in policies.errors.items():
        instead = "its last good document is in force" if policies.states[name] == "last-good" else "it has no effect"
        problems.append(f'policy "{name}" is broken, {instead}: {"; ".join(error.splitlines())}')
    return policies.layers, problems
