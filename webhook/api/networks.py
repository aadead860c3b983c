"""The annotation with which a pod requests additional networks from Multus.

https://github.com/k8snetworkplumbingwg/multus-cni/blob/v4.2.2/docs/how-to-use.md
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from webhook.api import names

NETWORKS: Final = "k8s.v1.cni.cncf.io/networks"
DEFAULT_NETWORK: Final = "v1.multus-cni.io/default-network"
"""The annotation that replaces the cluster's default network for a pod."""

RESOURCE_NAME: Final = "k8s.v1.cni.cncf.io/resourceName"
"""The annotation of a NetworkAttachmentDefinition that names the device resource that each attached pod needs."""

_INTERFACE_MAX_LENGTH: Final = 15  # Linux' IFNAMSIZ without the final zero byte


class NetworksError(ValueError):
    """The message begins with a verb, such as `has a name that ...`."""


class Network(NamedTuple):
    """A NetworkAttachmentDefinition, and the interface in the pod.

    If `namespace` is empty, the pod's namespace applies. If `interface` is empty, Multus chooses a name.
    """

    namespace: str
    name: str
    interface: str = ""

    def __str__(self) -> str:
        namespace = f"{self.namespace}/" if self.namespace else ""
        return f"{namespace}{self.name}{f'@{self.interface}' if self.interface else ''}"

    def within(self, namespace: str) -> tuple[str, str]:
        return self.namespace or namespace, self.name


class _Selection(msgspec.Struct):
    name: str
    namespace: str | None = None
    interface: str | None = None


_decoder = msgspec.json.Decoder(list[_Selection])


def parse(text: str) -> list[Network]:
    """The networks in `[namespace/]name[@interface],...` or in a JSON list. Names are not checked.

    NetworksError if the text has neither form.
    """
    if not text.strip():
        return []
    if _in_json(text):
        try:
            selections = _decoder.decode(text.encode())
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            raise NetworksError("is not a list of networks in JSON") from None
        return [Network(selected.namespace or "", selected.name, selected.interface or "") for selected in selections]
    return [_selected(item.strip()) for item in text.split(",")]


def parse_strictly(text: str) -> list[Network]:
    """Like `parse`, except that JSON and invalid names are errors."""
    if _in_json(text):
        raise NetworksError("is not [namespace/]name[@interface], with commas between several")
    networks = parse(text)
    for network in networks:
        for part in filter(None, network):
            # Network Resources Injector accepts only these names.
            if problem := names.dns_1123_label_problem(part):
                raise NetworksError(f"has a name that {problem}")
        if len(network.interface) > _INTERFACE_MAX_LENGTH:
            raise NetworksError(f"has an interface of more than {_INTERFACE_MAX_LENGTH} characters")
    return networks


def extended(text: str, more: Iterable[Network]) -> str:
    """The valid `text` with `more` networks at its end."""
    if not _in_json(text):
        return _start(text) + ", ".join(map(str, more))
    fields = ({key: value for key, value in network._asdict().items() if value} for network in more)
    return _start(text) + ", ".join(msgspec.json.encode(entry).decode() for entry in fields) + "]"


def extends(text: str, original: str) -> bool:
    return text.startswith(_start(original))


def _start(text: str) -> str:
    start = text.rstrip()
    if _in_json(text):
        start = start.removesuffix("]").rstrip()
    return start + ("" if start.strip() in {"", "["} else ", ")


def _in_json(text: str) -> bool:
    return any(char in text for char in '[{"')


def _selected(item: str) -> Network:
    network, at, interface = item.partition("@")
    namespace, slash, name = network.rpartition("/")
    if "@" in interface or "/" in namespace or not name or (at and not interface) or (slash and not namespace):
        raise NetworksError("is not [namespace/]name[@interface], with commas between several")
    return Network(namespace, name, interface)
