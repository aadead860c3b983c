"""The input of the checks, as `gather` has read it: no check reads the cluster itself."""

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
from webhook.installation.doctor.certificates import Certificates
from webhook.installation.doctor.unread import Unread
from webhook.plugins.loading import Plugin

AGAIN: Final = "kubectl apply -k manifests/overlays/mine (your overlay)"
KUEUE_HOOK: Final = "mmpijob.kb.io"
"""Kueue's hook that suspends MPIJobs with a queue; the configuration around it has many names."""
KUEUE_CONFIGURATION: Final = "kueue-mutating-webhook-configuration"
"""The name in Kueue's own manifests, the one that the service may read when it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The place of an installation in its cluster."""

    namespace: str = PROGRAM
    """The namespace of the service and its policies."""
    service: str = PROGRAM
    """The name of its Service."""
    kueue_namespace: str = KUEUE_NAMESPACE
    """Empty to read it from the Deployment."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A dry-run creation of a job."""

    namespace: str
    refusal: str = ""
    """The API server's message; empty if it accepted the job."""


@dataclass(frozen=True, slots=True)
class Policies:
    """The policy ConfigMaps."""

    count: int = 0
    broken: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The state and the fault of each broken one, by name."""
    unlabelled: Sequence[str] = ()
    """ConfigMaps in the same namespace that contain a policy and lack the label."""
    misplaced: Mapping[str, str] = field(default_factory=dict)
    """ConfigMaps in the same namespace that contain a policy under a wrong key, which is the value."""
    elsewhere: Sequence[tuple[str, str]] | Unread = ()
    """(namespace, name) of ConfigMaps with the label in other namespaces."""
    gangs: Mapping[str, str] = field(default_factory=dict)
    """The value of the operator's --gang-scheduling that a policy assumes, by the policy's name."""


@dataclass(frozen=True, slots=True)
class AskedInVain:
    """A job whose annotations name unknown rules or injections."""

    job: str
    """NAMESPACE/NAME."""
    annotation: str
    unknown: Sequence[str]
    """The unknown ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A cluster's state. A missing object is None; Unread has the reason of a denied one."""

    location: Location
    now: datetime
    """By the clock of this machine."""
    server_time: datetime | None
    """By the clock of the API server; None if its answers have no date."""
    version: KubernetesObject | Unread
    """The API server's version."""
    mutating: Sequence[KubernetesObject] | Unread
    """All mutating webhook configurations of the cluster."""
    validating: Sequence[KubernetesObject] | Unread
    """All validating webhook configurations of the cluster."""
    service: KubernetesObject | Unread | None
    """The Service in front of the replicas."""
    endpoints: Sequence[Address] | Unread
    """The ready replicas."""
    deployment: KubernetesObject | Unread | None
    """The service's Deployment."""
    pods: Sequence[KubernetesObject] | Unread
    """The replicas."""
    deployments: Sequence[KubernetesObject] | Unread
    """The Deployments of all namespaces."""
    crd: KubernetesObject | Unread | None
    """The CRD of MPIJobs."""
    kueue_config: KubernetesObject | Unread | None
    """The ConfigMap with Kueue's configuration."""
    certificates: Certificates
    rights: Mapping[Right, bool] | Unread
    """Whether the service has each required right."""
    policies: Policies | Unread
    asked_in_vain: Sequence[AskedInVain] | Unread = ()
    """From all jobs; empty if the cluster has no MPIJobs."""
    probe: Probe | None = None
    """None unless requested."""
    plugins: Sequence[Plugin] = ()
    """The plug-ins that are named where this command runs."""

    @property
    def on_trial(self) -> bool:
        """Whether only a server of `serve --register` exists: none of the objects of the manifests exist."""
        ours = [configuration(each) for each in (self.mutating, self.validating) if not isinstance(each, Unread)]
        nothing_else = self.deployment is None and self.service is None
        return nothing_else and any(ours) and all(each is None or made_by_register(each) for each in ours)

    @property
    def kubernetes(self) -> tuple[int, int] | None:
        """Major and minor version of the API server."""
        if isinstance(self.version, Unread):
            return None
        match = re.search(r"v(\d+)\.(\d+)", str(self.version.get("gitVersion")))
        return (int(match[1]), int(match[2])) if match else None

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


def configuration(configurations: Sequence[KubernetesObject]) -> KubernetesObject | None:
    """The service's webhook configuration of one kind: by its name, else by the names of its hooks."""
    named = [each for each in configurations if each["metadata"]["name"] == registration.NAME]
    alike = [
        each for each in configurations if any(hook["name"].endswith(f".{registration.DOMAIN}") for hook in hooks(each))
    ]
    return next(iter(named + alike), None)


def made_by_register(configuration: KubernetesObject) -> bool:
    """Whether a configuration belongs to a development server."""
    return (configuration["metadata"].get("labels") or {}).get(registration.MADE_BY) == registration.BY_REGISTER


def hooks(configuration: KubernetesObject) -> list[KubernetesObject]:
    return list(configuration.get("webhooks") or ())


def containers(deployment: KubernetesObject) -> list[KubernetesObject]:
    return list(deployment["spec"]["template"]["spec"].get("containers") or ())


def flag(container: KubernetesObject, name: str) -> str:
    """The value of a flag of a Go program, which may be a separate argument; empty if it is not given."""
    words = [str(word) for key in ("command", "args") for word in container.get(key) or ()]
    for word, following in pairwise([*words, ""]):
        given, equals, value = word.partition("=")
        if given in {f"-{name}", f"--{name}"}:
            return value if equals else following
    return ""


def variables(deployment: object) -> dict[str, str]:
    """The literal environment variables of the service's Deployment."""
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
