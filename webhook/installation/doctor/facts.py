"""Everything that the checks look at, as `gather` has read it: no check asks the cluster itself."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Final

from webhook import PROGRAM
from webhook.client.access_reviews import Right
from webhook.client.calls import Address
from webhook.client.objects import KubernetesObject
from webhook.cluster.resource import KUEUE_NAMESPACE
from webhook.installation import registration
from webhook.installation.doctor.certificates import FILES, SELF_MANAGED, Certificates
from webhook.installation.doctor.unread import Unread
from webhook.plugins.loading import Plugin

KUEUE_HOOK: Final = "mmpijob.kb.io"
"""Kueue's hook that suspends MPIJobs with a queue; the configuration around it has many names."""
KUEUE_CONFIGURATION: Final = "kueue-mutating-webhook-configuration"
"""The name in Kueue's own manifests, the one that the service may read when it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where on the cluster an installation is found."""

    namespace: str = PROGRAM
    """That of the service and of its policies."""
    service: str = PROGRAM
    """The name of its Service."""
    kueue_namespace: str = KUEUE_NAMESPACE
    """Empty for what the Deployment says."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The creation of a job as a dry run."""

    namespace: str
    refusal: str = ""
    """The API server's words; empty if it accepted the job."""


@dataclass(frozen=True, slots=True)
class Policies:
    """The policy ConfigMaps."""

    count: int = 0
    """How many there are."""
    broken: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Of each broken one its state and its fault, by name."""
    unlabelled: Sequence[str] = ()
    """ConfigMaps beside them that hold a policy and lack the label."""
    misplaced: Mapping[str, str] = field(default_factory=dict)
    """ConfigMaps beside them that hold a policy under another key, which is the value."""
    elsewhere: Sequence[tuple[str, str]] | Unread = ()
    """(namespace, name) of ConfigMaps with the label in other namespaces."""
    gangs: Mapping[str, str] = field(default_factory=dict)
    """The operator's --gang-scheduling that each of those counts on that say one, by name."""


@dataclass(frozen=True, slots=True)
class AskedInVain:
    """A job whose annotations name rules or injections that there are not."""

    job: str
    """NAMESPACE/NAME."""
    annotation: str
    """The key."""
    unknown: Sequence[str]
    """What is no id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was read of a cluster. An object that does not exist is None; of one that was refused, Unread says why."""

    location: Location
    now: datetime
    """By the clock of this machine."""
    server_time: datetime | None
    """By the clock of the API server; None if its answers have no date."""
    version: KubernetesObject | Unread
    """Of the API server."""
    mutating: Sequence[KubernetesObject] | Unread
    """All mutating webhook configurations of the cluster."""
    validating: Sequence[KubernetesObject] | Unread
    """All validating ones."""
    service: KubernetesObject | Unread | None
    """The Service in front of the replicas."""
    endpoints: Sequence[Address] | Unread
    """Of the replicas that are ready."""
    deployment: KubernetesObject | Unread | None
    """That of the service."""
    pods: Sequence[KubernetesObject] | Unread
    """The replicas."""
    deployments: Sequence[KubernetesObject] | Unread
    """Those of all namespaces."""
    crd: KubernetesObject | Unread | None
    """That of MPIJobs."""
    kueue_config: KubernetesObject | Unread | None
    """The ConfigMap with Kueue's configuration."""
    certificates: Certificates
    rights: Mapping[Right, bool] | Unread
    """Whether the service has each of the rights that were asked for."""
    policies: Policies | Unread
    asked_in_vain: Sequence[AskedInVain] | Unread = ()
    """Of all jobs; empty where the cluster has no MPIJobs."""
    probe: Probe | None = None
    """None if it was not asked for."""
    plugins: Sequence[Plugin] = ()
    """Those that are named where this command runs."""

    @property
    def on_trial(self) -> bool:
        """Whether a server of `serve --register` is all there is: it has nothing of what the manifests install."""
        ours = [configuration(each) for each in (self.mutating, self.validating) if not isinstance(each, Unread)]
        nothing_else = self.deployment is None and self.service is None
        return nothing_else and any(ours) and all(each is None or made_by_register(each) for each in ours)

    @property
    def kubernetes(self) -> tuple[int, int] | None:
        """Major and minor version of the API server."""
        if isinstance(self.version, Unread):
            return None
        found = re.search(r"v(\d+)\.(\d+)", str(self.version.get("gitVersion")))
        return (int(found[1]), int(found[2])) if found else None

    @property
    def again(self) -> str:
        """The command that applies the manifests again."""
        overlay = {SELF_MANAGED: "default", FILES: "cert-manager"}.get(self.certificates.source, "default")
        metadata = self.service.get("metadata") or {} if isinstance(self.service, Mapping) else {}
        if any("service.beta.openshift.io" in key for key in metadata.get("annotations") or {}):
            overlay = "openshift"
        return f"kubectl apply -k manifests/overlays/{overlay} (or your own overlay)"

    def images(self, program: str) -> Iterator[tuple[str, str]]:
        """(namespace, image) of each Deployment that runs `program`."""
        for namespace, container in self.programs(program):
            yield namespace, container["image"]

    def programs(self, program: str) -> Iterator[tuple[str, KubernetesObject]]:
        """(namespace, container) of each Deployment that runs `program`, by the name of its image.

        Red Hat's images have more around the name: `odh-training-operator-rhel9`.
        """
        name = re.compile(rf"(?:.*-)?{program}(?:-rhel\d+)?")
        for deployment in () if isinstance(self.deployments, Unread) else self.deployments:
            for container in containers(deployment):
                last = str(container.get("image") or "").partition("@")[0].rpartition("/")[2]
                if name.fullmatch(last.partition(":")[0]):
                    yield deployment["metadata"]["namespace"], container


def configuration(found: Sequence[KubernetesObject]) -> KubernetesObject | None:
    """Our own among the webhook configurations of one kind: found by its name, else by the names of its hooks."""
    named = [each for each in found if each["metadata"]["name"] == registration.NAME]
    alike = [each for each in found if any(hook["name"].endswith(f".{registration.DOMAIN}") for hook in hooks(each))]
    return next(iter(named + alike), None)


def made_by_register(found: KubernetesObject) -> bool:
    """Whether a configuration is of a development server."""
    return (found["metadata"].get("labels") or {}).get(registration.MADE_BY) == registration.BY_REGISTER


def hooks(found: KubernetesObject) -> list[KubernetesObject]:
    """The webhooks of a configuration."""
    return list(found.get("webhooks") or ())


def containers(deployment: KubernetesObject) -> list[KubernetesObject]:
    """The containers of a Deployment's pods."""
    return list(deployment["spec"]["template"]["spec"].get("containers") or ())


def flag(container: KubernetesObject, name: str) -> str:
    """The value of a flag of a Go program, which may stand in a word of its own; empty where it is not given."""
    words = [str(word) for key in ("command", "args") for word in container.get(key) or ()]
    for word, following in pairwise([*words, ""]):
        given, equals, value = word.partition("=")
        if given in {f"-{name}", f"--{name}"}:
            return value if equals else following
    return ""


def variables(deployment: object) -> dict[str, str]:
    """The environment of the service's Deployment, as far as it is written there."""
    if not isinstance(deployment, dict):
        return {}
    found = (each for container in containers(deployment)[:1] for each in container.get("env") or ())
    return {each["name"]: str(each.get("value") or "") for each in found}


def arguments(deployment: object) -> dict[str, str]:
    """The options `--name=value` of the service's Deployment; a bare `--name` has the value ""."""
    if not isinstance(deployment, dict):
        return {}
    texts = [text for container in containers(deployment)[:1] for text in container.get("args") or ()]
    return {name: value for name, _, value in (str(text).partition("=") for text in texts if str(text)[:2] == "--")}
