"""The input of the checks: the state of a cluster."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, pairwise
from typing import Final

from webhook import PROGRAM
from webhook.client.access_reviews import Right
from webhook.client.calls import Address
from webhook.client.objects import KubernetesObject
from webhook.cluster.resource import KUEUE_NAMESPACE
from webhook.installation import registration
from webhook.installation.doctor.certificates import Certificates
from webhook.installation.doctor.unread import Unread

AGAIN: Final = "kubectl apply -k manifests/overlays/mine (your overlay)"
KUEUE_HOOK: Final = "mmpijob.kb.io"
"""Kueue's hook, which suspends MPIJobs that have a queue. The name of the hook's configuration varies."""
KUEUE_CONFIGURATION: Final = "kueue-mutating-webhook-configuration"
"""The name that Kueue's manifests give to the configuration with KUEUE_HOOK. Of Kueue's configurations, the service has
the right to read only the one with this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    namespace: str = PROGRAM
    service: str = PROGRAM
    kueue_namespace: str = KUEUE_NAMESPACE
    """Kueue's namespace. If this is empty, the namespace is read from the options of the Deployment."""


@dataclass(frozen=True, slots=True)
class Probe:
    namespace: str
    rejection: str = ""
    """The API server's message about the dry run; empty if it accepted the job."""


@dataclass(frozen=True, slots=True)
class Policies:
    count: int = 0
    broken: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """(state, fault) of each broken policy, by name."""
    unlabelled: Sequence[str] = ()
    """ConfigMaps in the service's namespace that contain a policy but lack the label."""
    misplaced: Mapping[str, str] = field(default_factory=dict)
    """ConfigMaps in the service's namespace that contain a policy under a wrong key: the name and the wrong key."""
    elsewhere: Sequence[tuple[str, str]] | Unread = ()
    """(namespace, name) of ConfigMaps with the label in other namespaces."""
    gangs: Mapping[str, str] = field(default_factory=dict)
    """For each policy, by name: the value of the operator's option --gang-scheduling that the policy assumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The state of a cluster. A missing object is None. An object that could not be read is Unread."""

    location: Location
    now: datetime
    """The time of this machine."""
    server_time: datetime | None
    """None if the API server's answers have no date."""
    version: KubernetesObject | Unread
    mutating: Sequence[KubernetesObject] | Unread
    """All configurations of the cluster. `validating` and `deployments` are complete too."""
    validating: Sequence[KubernetesObject] | Unread
    service: KubernetesObject | Unread | None
    endpoints: Sequence[Address] | Unread
    deployment: KubernetesObject | Unread | None
    pods: Sequence[KubernetesObject] | Unread
    deployments: Sequence[KubernetesObject] | Unread
    crd: KubernetesObject | Unread | None
    kueue_config: KubernetesObject | Unread | None
    certificates: Certificates
    rights: Mapping[Right, bool] | Unread
    policies: Policies | Unread
    probe: Probe | None = None
    """None if no probe was requested."""

    @property
    def kubernetes(self) -> tuple[int, int] | None:
        if isinstance(self.version, Unread):
            return None
        match = re.search(r"v(\d+)\.(\d+)", str(self.version.get("gitVersion")))
        return (int(match[1]), int(match[2])) if match else None

    def programs(self, program: str) -> Iterator[tuple[str, KubernetesObject]]:
        """(namespace, container) of each Deployment whose image has the name `program`.

        Red Hat's images have longer names, such as `odh-training-operator-rhel9`.
        """
        name = re.compile(rf"(?:.*-)?{program}(?:-rhel\d+)?")
        for deployment in () if isinstance(self.deployments, Unread) else self.deployments:
            for container in containers(deployment):
                last = str(container.get("image") or "").partition("@")[0].rpartition("/")[2]
                if name.fullmatch(last.partition(":")[0]):
                    yield deployment["metadata"]["namespace"], container


def configuration(configurations: Sequence[KubernetesObject]) -> KubernetesObject | None:
    """The service's webhook configuration: the one named `registration.NAME`, else one with a hook of this service."""

    def has_our_hooks(stored: KubernetesObject) -> bool:
        return any(hook["name"].endswith(f".{registration.DOMAIN}") for hook in hooks(stored))

    named = (stored for stored in configurations if stored["metadata"]["name"] == registration.NAME)
    return next(chain(named, filter(has_our_hooks, configurations)), None)


def hooks(configuration: KubernetesObject) -> list[KubernetesObject]:
    return list(configuration.get("webhooks") or ())


def containers(deployment: KubernetesObject) -> list[KubernetesObject]:
    return list(deployment["spec"]["template"]["spec"].get("containers") or ())


def flag(container: KubernetesObject, name: str) -> str:
    """The value of a flag of a Go program; empty if it is not set. The value may be a separate argument."""
    words = [str(word) for key in ("command", "args") for word in container.get(key) or ()]
    for word, following in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        if option in {f"-{name}", f"--{name}"}:
            return value if equals else following
    return ""


def arguments(deployment: object) -> dict[str, str]:
    """The options `--name=value` of the service's Deployment. An option without a value has the value ""."""
    if not isinstance(deployment, dict):
        return {}
    texts = [text for container in containers(deployment)[:1] for text in container.get("args") or ()]
    return {name: value for name, _, value in (str(text).partition("=") for text in texts if str(text)[:2] == "--")}
