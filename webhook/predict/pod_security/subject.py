"""A pod template prepared for the checks, and words for their messages."""

from collections.abc import Iterable, Iterator, Sized
from typing import NamedTuple

from webhook.predict.pod_security.levels import NEWEST, Version
from webhook.predict.pod_security.pod import (
    Container,
    ContainerSecurityContext,
    PodSecurityContext,
    PodSpec,
    PodTemplate,
    Port,
)


class Place(NamedTuple):
    """A container with its path in the template. Without a security context, `security` is empty."""

    path: str
    container: Container
    security: ContainerSecurityContext

    @property
    def name(self) -> str:
        return self.container.name


class Subject:
    """The template to check. `containers` also has init and ephemeral containers, in Kubernetes' order."""

    def __init__(self, template: PodTemplate, version: Version = NEWEST) -> None:
        self.version = version
        self.annotations = template.annotations
        self.spec = template.spec or PodSpec()
        self.security = self.spec.security_context or PodSecurityContext()
        self.containers = [
            *_places("spec.initContainers", self.spec.init_containers),
            *_places("spec.containers", self.spec.containers),
            *_places("spec.ephemeralContainers", self.spec.ephemeral_containers),
        ]

    @property
    def for_windows(self) -> bool:
        return self.spec.os is not None and self.spec.os.name == "windows"

    @property
    def in_user_namespace(self) -> bool:
        return self.spec.host_users is False

    def host_port(self, port: Port) -> int | None:
        """With hostNetwork, the API server sets an unset `hostPort` to `containerPort` (`SetDefaults_Pod`)."""
        return port.host_port or (port.container_port if self.spec.host_network else None)


def _places(path: str, containers: Iterable[Container] | None) -> Iterator[Place]:
    for index, container in enumerate(containers or ()):
        yield Place(f"{path}[{index}]", container, container.security_context or ContainerSecurityContext())


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}


def plural(singular: str, many: str, items: Sized) -> str:
    return singular if len(items) == 1 else many


def quoted(items: Iterable[str]) -> str:
    """`"a", "b"`, without escaping."""
    return ", ".join(f'"{item}"' for item in items)


def containers(places: list[Place]) -> str:
    """`container "a"`, or `containers "a", "b"`."""
    return f"{plural('container', 'containers', places)} {quoted(place.name for place in places)}"


def setters(pod: bool, places: list[Place]) -> str:
    """`pod`, `container "a"`, or `pod and container "a"`."""
    return " and ".join(["pod"] * pod + [containers(places)] * bool(places))


def fields(field: str, places: list[Place], *, pod: bool = False) -> tuple[str, ...]:
    """The paths of `field` in each container, after the path in the pod's spec if `pod` is True."""
    return (f"spec.{field}",) * pod + tuple(f"{place.path}.{field}" for place in places)


def go_quoted(text: str) -> str:
    """The text as Go's %q writes it."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if escape := _ESCAPES.get(char):
        return escape
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
