"""A pod template prepared for the checks: all containers in one list, no field missing."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.predict.pod_security.levels import NEWEST, Version
from webhook.predict.pod_security.pod import (
    Container,
    ContainerSecurityContext,
    PodSecurityContext,
    PodSpec,
    PodTemplate,
)

_NO_SPEC = PodSpec()
_POD_DEFAULT = PodSecurityContext()
_CONTAINER_DEFAULT = ContainerSecurityContext()


class Place(NamedTuple):
    """A container, where it stands in the template, and its security context (an empty one if it has none)."""

    path: str
    container: Container
    security: ContainerSecurityContext

    @property
    def name(self) -> str:
        """The container's name."""
        return self.container.name


class Subject:
    """What a check looks at. `containers`: init containers, then containers, then ephemeral ones, as upstream."""

    __slots__ = ("annotations", "containers", "security", "spec", "version")

    def __init__(self, template: PodTemplate, version: Version = NEWEST) -> None:
        self.version = version
        self.annotations = template.annotations
        self.spec = template.spec or _NO_SPEC
        self.security = self.spec.security_context or _POD_DEFAULT
        self.containers = [
            *_places("spec.initContainers", self.spec.init_containers),
            *_places("spec.containers", self.spec.containers),
            *_places("spec.ephemeralContainers", self.spec.ephemeral_containers),
        ]

    @property
    def for_windows(self) -> bool:
        """Whether the pod says that it is for Windows; there the API server refuses most of what Linux has."""
        return self.spec.os is not None and self.spec.os.name == "windows"

    @property
    def in_user_namespace(self) -> bool:
        """Whether root in the pod is nobody on the host: `hostUsers: false`."""
        return self.spec.host_users is False


def _places(path: str, containers: Iterable[Container] | None) -> Iterator[Place]:
    for index, container in enumerate(containers or ()):
        yield Place(f"{path}[{index}]", container, container.security_context or _CONTAINER_DEFAULT)
