"""The annotation by which a pod asks Multus for further networks.

https://github.com/k8snetworkplumbingwg/multus-cni/blob/v4.2.2/docs/how-to-use.md
"""

from typing import Final, NamedTuple

import msgspec

NETWORKS: Final = "k8s.v1.cni.cncf.io/networks"


class NetworksError(ValueError):
    """The annotation cannot be read; the message says why."""


class Network(NamedTuple):
    """A NetworkAttachmentDefinition; without a namespace it is in the pod's."""

    namespace: str
    name: str


class _Selection(msgspec.Struct, gc=False):
    name: str
    namespace: str | None = None


_decoder = msgspec.json.Decoder(list[_Selection])


def parse(text: str) -> list[Network]:
    """The networks in either notation: `[namespace/]name[@interface]` with commas between, or a list in JSON.

    NetworksError for what is neither. Names are not checked.
    """
    if not text.strip():
        return []
    if any(char in text for char in '[{"'):
        try:
            return [Network(selected.namespace or "", selected.name) for selected in _decoder.decode(text.encode())]
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            raise NetworksError("is not a list of networks in JSON") from None
    return [_selected(item.strip()) for item in text.split(",")]


def _selected(item: str) -> Network:
    network, at, interface = item.partition("@")
    namespace, slash, name = network.rpartition("/")
    if "@" in interface or "/" in namespace or not name or (at and not interface) or (slash and not namespace):
        raise NetworksError("is not [namespace/]name[@interface], with commas between several")
    return Network(namespace, name)
